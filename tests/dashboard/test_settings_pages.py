"""The pages of settings: those in force, with where they came from and nothing of any secret; and
the assistant's profile."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client

from memoryproject.environment import Url
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.configured import configured_context_limit
from memoryproject.settings_table import OWN_SETTINGS
from memoryproject.staff_site.operations.settings_in_force import address_shown, settings_in_force
from sessions_app.models import AssistantProfile
from tests.dashboard.staff import page
from tests.shown import found_in, words_of
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db
LIKE_A_SECRET = re.compile(r"KEY|TOKEN(?!S)|SECRET|PASSW|CREDENTIAL|SALT")
SECRET = {name for name, setting in OWN_SETTINGS.items() if setting.secret}
ADDRESSES = {name for name, setting in OWN_SETTINGS.items() if isinstance(setting, Url)} - SECRET


PAGE = "/admin/operations/settings/"
PAGES = [
    f"/admin/operations/{name}"
    for name in ("", "settings/", "queue/", "schedules/", "turns/", "provider/")
]


def row(shown: str, name: str) -> str:
    found = re.search(rf'<tr id="{name}".*?</tr>', shown, re.S)
    assert found, name
    return words_of(found[0])


def test_every_setting_of_the_example_stands_there_with_a_meaning(admin_client: Client) -> None:
    shown = page(admin_client, PAGE)
    for name, setting in OWN_SETTINGS.items():
        assert str(setting.meaning) in html.unescape(row(shown, name))


def test_what_is_named_like_a_secret_is_one() -> None:
    """Nothing but the name shows that a new setting must be hidden."""
    named = {name for name in OWN_SETTINGS if LIKE_A_SECRET.search(name)}
    assert named - SECRET == {"MEDIA_S3_ACCESS_KEY_ID"}


def test_no_secret_is_on_any_page(admin_client: Client, settings: Any) -> None:
    secrets = {}
    for number, name in enumerate(sorted(SECRET - {"SECRET_KEY"})):
        secrets[name] = f"Sekret{number}-{'x' * number}-qZ"
        setattr(settings, name, secrets[name])
    for number, name in enumerate(sorted(ADDRESSES - {"Q_BROKER", "DATABASE_URL"})):
        secrets[name] = f"hidden{number}word"
        address = f"http://person{number}:{secrets[name]}@127.0.0.1:9/v1?key=queryword"
        setattr(settings, name, address)
    secrets["DATABASE_URL"] = "dbpass!word"
    host = "dbuser:dbpass!word@db.example:5432"
    settings.DATABASE_URL = f"postgresql://{host}/memory?sslpassword=queryword"
    settings.CONFIG_ERRORS = [
        "DATABASE_URL must be a URL; it is 'mysql://other:strangepass@host'.",
        f"GODFATHER_PHONE is odd because of {secrets['OPENAI_API_KEY']}",
    ]
    secrets["wrong"] = "strangepass"
    shown = "".join(page(admin_client, path) for path in PAGES)
    for value in (*secrets.values(), settings.SECRET_KEY, "queryword", "person1", "dbuser"):
        assert value not in shown, value
        # Nor the greater part of it.
        assert value[: len(value) * 2 // 3] not in shown or len(value) < 9


def test_values_and_where_they_came_from(admin_client: Client, settings: Any) -> None:
    settings.CONFIG_ORIGINS = {
        **settings.CONFIG_ORIGINS,
        "CLIENT_MAX_TOKENS": "config.json",
        "RECALL_TOP_K": ".env",
        "PORT": "environment",
    }
    settings.GODFATHER_PHONE = frozenset({"15550199999@c.us", "15550100000@c.us"})
    settings.OPENAI_API_KEY, settings.GREEN_API_TOKEN = "k" * 32, ""
    settings.WHATSAPP_PROVIDER = "green"
    settings.CONFIG_ERRORS = ["DEBUG must be true or false; it is 'x'."]
    shown = page(admin_client, PAGE)
    for name, told in (
        ("CLIENT_MAX_TOKENS", "4000 config.json"),
        ("RECALL_TOP_K", "5 .env"),
        ("PORT", "8000 environment"),
        ("HISTORY_MAX_MESSAGES", "not set default"),
        ("ENABLE_MEMORY_SYSTEM", "true environment"),  # tests/isolation.py gives it.
        ("GODFATHER_PHONE", "15550100000@c.us, 15550199999@c.us"),
        ("OPENAI_API_KEY", "set, 32 characters default"),
        ("GREEN_API_TOKEN", "not set"),
        ("SECRET_KEY", "made by itself, in DATA_DIR"),
        # What the checks find stands beside its setting.
        ("WHATSAPP_PROVIDER", "but not set: GREEN_API_ID_INSTANCE"),
        ("GREEN_API_TOKEN", "but not set"),
        ("DEBUG", "it is 'x'"),
        ("DEBUG", "default: what was given is wrong"),
    ):
        assert told in row(shown, name), name
    assert settings_in_force()["count"] == 2


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("", "not set"),
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        ("https://sk-abc@host/v1", "https://•••@host/v1"),
        ("redis://:pass@[::1]:6379/0", "redis://•••@[::1]:6379/0"),
        ("postgres://u:p%40ss@h/db?password=x", "postgres://•••@h/db?•••"),
        ("postgres://u:p@ss/w@h/db", "set, 24 characters"),
        ("postgres://u:p[x@h/db", "set, 21 characters"),
        ("postgres://u:12x@:99999999/db", "set, 29 characters"),
        ("just-a-secret", "set, 13 characters"),
    ],
)
def test_addresses_show_no_credentials(given: str, shown: str) -> None:
    assert address_shown(given) == shown


def test_a_limit_that_the_server_reported_is_explained(admin_client: Client, settings: Any) -> None:
    settings.CHAT_MODEL, settings.OPENAI_MODEL = "openai", "small-model"
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    assert "small-model refused" not in row(page(admin_client, PAGE), "MAX_CONTEXT_TOKENS")
    configured_context_limit().learn(2_345)
    shown = row(page(admin_client, PAGE), "MAX_CONTEXT_TOKENS")
    assert "the server of small-model refused a prompt" in shown
    assert "kept within 2345 tokens" in shown
    assert "Set MAX_CONTEXT_TOKENS to 2345" in shown
    assert "1 problem" in page(admin_client, "/admin/operations/")
    # Where staff have set a lower one, there is nothing to do.
    settings.MAX_CONTEXT_TOKENS = 2_000
    shown = row(page(admin_client, PAGE), "MAX_CONTEXT_TOKENS")
    assert "refused" not in shown


PROFILE = "/admin/sessions_app/assistantprofile/1/change/"
PREVIEW = "/admin/sessions_app/assistantprofile/preview/"
VALUES = {
    "name": "Dina",
    "persona": "You are kind.",
    "business_facts": "We sell flowers.",
    "opening_hours": "Sunday to Thursday",
    "languages": "en, he",
}


def seen(client: Client) -> str:
    """The stamp of a form that is shown now."""
    found = found_in(r'name="seen" value="([^"]*)"', client.get(PROFILE).content.decode())
    return html.unescape(found)


def save(client: Client, version: str, **changes: str) -> Any:
    return client.post(PROFILE, {**VALUES, "seen": version, **changes})


def test_what_is_saved_goes_into_the_next_prompt(admin_client: Client, world: World) -> None:
    assert save(admin_client, seen(admin_client), persona="One\r\nTwo").status_code == 302
    assert AssistantProfile.objects.get().persona == "One\nTwo"
    world.say(CLIENT, "Hello")
    assert "You are Dina" in world.prompt()[0].content
    event = AuditEvent.objects.get(action="profile.update")
    assert event.details["fields"] == ["business_facts", "name", "opening_hours", "persona"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 65),
        ("persona", "x" * 20_001),
        ("persona", "\x00"),
        ("languages", "English"),
        ("languages", ","),
    ],
)
def test_wrong_values_are_marked_and_kept(admin_client: Client, field: str, value: str) -> None:
    version = seen(admin_client)
    answer = save(admin_client, version, **{"opening_hours": "Always", field: value})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert f'id="id_{field}_error"' in page
    assert "Always</textarea>" in page
    assert AssistantProfile.objects.get().opening_hours == ""


@pytest.mark.parametrize(
    ("kind", "language", "told"),
    [
        ("client", "en", ["a client of the business", "When are you open tomorrow?"]),
        ("client", "he", ["a client of the business", "מתי אתם פתוחים מחר?"]),
        ("godfather", "en", ["the godfather, the owner", "When are you open tomorrow?"]),
        ("godfather", "he", ["the godfather, the owner", "מתי אתם פתוחים מחר?"]),
    ],
)
def test_the_preview_is_made_of_what_is_typed_and_saves_nothing(
    admin_client: Client, kind: str, language: str, told: list[str]
) -> None:
    form = {**VALUES, "seen": seen(admin_client), "kind": kind, "language": language}
    answer = admin_client.post(PREVIEW, form)
    assert answer.status_code == 200
    page = answer.content.decode()
    shown = words_of(page[page.index('id="preview"') :])
    for text in (*told, "You are Dina", "You are kind.", "We sell flowers.", "about"):
        assert text in shown
    assert 'value="Dina"' in page
    assert f'<option value="{kind}" selected>' in page
    assert f'<option value="{language}" selected>' in page
    assert AssistantProfile.objects.get().name == "DeniDin"
    assert not AuditEvent.objects.filter(action="profile.update").exists()


def test_for_a_script_the_preview_comes_alone(admin_client: Client) -> None:
    form = {**VALUES, "seen": seen(admin_client)}
    answer = admin_client.post(PREVIEW, form, headers={"X-Part": "yes"})
    assert "<html" not in answer.content.decode()
    wrong = admin_client.post(PREVIEW, {**form, "name": ""}, headers={"X-Part": "yes"})
    assert wrong.status_code == 422
    assert "Name:" in words_of(wrong.content.decode())
    assert admin_client.post(PREVIEW, {**form, "name": ""}).status_code == 422
