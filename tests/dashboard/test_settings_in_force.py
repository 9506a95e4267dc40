"""The settings in force: all of them, with where they came from, and nothing of any secret."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.core.checks import Error
from django.test import Client

from memoryproject.environment import Environment, Url
from memoryproject.foundation.integrations.configured import configured_context_limit
from memoryproject.settings_table import OWN_SETTINGS
from memoryproject.staff_site.operations.settings_in_force import (
    address_shown,
    secret_shown,
    settings_in_force,
    without_secrets,
)

pytestmark = pytest.mark.django_db
SECRET = {name for name, setting in OWN_SETTINGS.items() if setting.secret}
ADDRESSES = {name for name, setting in OWN_SETTINGS.items() if isinstance(setting, Url)} - SECRET
LIKE_A_SECRET = re.compile(r"KEY|TOKEN(?!S)|SECRET|PASSW|CREDENTIAL|SALT")
PAGE = "/admin/operations/settings/"
PAGES = [
    f"/admin/operations/{name}"
    for name in ("", "settings/", "queue/", "schedules/", "turns/", "provider/")
]


def row(shown: str, name: str) -> str:
    found = re.search(rf'<tr id="{name}".*?</tr>', shown, re.S)
    assert found, name
    return " ".join(re.sub(r"<[^>]*>", " ", found[0]).split())


def test_every_setting_has_a_meaning_and_stands_on_the_page(admin_client: Client) -> None:
    shown = admin_client.get(PAGE).content.decode()
    for name, setting in OWN_SETTINGS.items():
        assert str(setting.meaning) in html.unescape(row(shown, name))


def test_what_is_named_like_a_secret_is_one() -> None:
    """Nothing but the name shows that a new setting must be hidden."""
    named = {name for name in OWN_SETTINGS if LIKE_A_SECRET.search(name)}
    assert named - SECRET == {"MEDIA_S3_ACCESS_KEY_ID"}


@pytest.mark.parametrize("path", PAGES)
def test_no_secret_is_on_any_page(admin_client: Client, settings: Any, path: str) -> None:
    secrets = {}
    for number, name in enumerate(sorted(SECRET - {"SECRET_KEY"})):
        secrets[name] = f"Sekret{number}-{'x' * number}-qZ"
        setattr(settings, name, secrets[name])
    for number, name in enumerate(sorted(ADDRESSES - {"Q_BROKER", "DATABASE_URL"})):
        secrets[name] = f"hidden{number}word"
        setattr(
            settings, name, f"http://person{number}:{secrets[name]}@127.0.0.1:9/v1?key=queryword"
        )
    secrets["DATABASE_URL"] = "dbpass!word"
    settings.DATABASE_URL = (
        "postgresql://dbuser:dbpass!word@db.example:5432/memory?sslpassword=queryword"
    )
    settings.CONFIG_ERRORS = [
        "DATABASE_URL must be a URL; it is 'mysql://other:strangepass@host'.",
        f"GODFATHER_PHONE is odd because of {secrets['OPENAI_API_KEY']}",
    ]
    secrets["wrong"] = "strangepass"
    shown = admin_client.get(path).content.decode()
    for value in (*secrets.values(), settings.SECRET_KEY, "queryword", "person1", "dbuser"):
        assert value not in shown, value
        # Nor the greater part of it.
        assert value[: len(value) * 2 // 3] not in shown or len(value) < 9


def test_of_a_secret_its_length_is_told(admin_client: Client, settings: Any) -> None:
    settings.OPENAI_API_KEY = "k" * 32
    settings.GREEN_API_TOKEN = ""
    shown = admin_client.get(PAGE).content.decode()
    assert "set, 32 characters default" in row(shown, "OPENAI_API_KEY")
    assert "not set" in row(shown, "GREEN_API_TOKEN")
    assert "made by itself, in DATA_DIR" in row(shown, "SECRET_KEY")


def test_values_and_where_they_came_from(admin_client: Client, settings: Any) -> None:
    settings.CONFIG_ORIGINS = {
        **settings.CONFIG_ORIGINS,
        "CLIENT_MAX_TOKENS": "config.json",
        "RECALL_TOP_K": ".env",
        "PORT": "environment",
    }
    settings.GODFATHER_PHONE = frozenset({"15550199999@c.us", "15550100000@c.us"})
    shown = admin_client.get(PAGE).content.decode()
    assert row(shown, "CLIENT_MAX_TOKENS").endswith("4000 config.json")
    assert row(shown, "RECALL_TOP_K").endswith("5 .env")
    assert row(shown, "PORT").endswith("8000 environment")
    assert row(shown, "DEBUG").endswith("false default")
    assert "15550100000@c.us, 15550199999@c.us" in row(shown, "GODFATHER_PHONE")
    assert row(shown, "HISTORY_MAX_MESSAGES").endswith("not set default")
    # tests/isolation.py gives it.
    assert row(shown, "ENABLE_MEMORY_SYSTEM").endswith("true environment")


def test_what_the_checks_find_stands_beside_its_setting(
    admin_client: Client, settings: Any
) -> None:
    settings.WHATSAPP_PROVIDER = "green"
    settings.CONFIG_ERRORS = ["PORT must be a whole number from 1 to 65535; it is 'x'."]
    shown = admin_client.get(PAGE).content.decode()
    assert "but not set: GREEN_API_ID_INSTANCE" in row(shown, "WHATSAPP_PROVIDER")
    assert "but not set" in row(shown, "GREEN_API_TOKEN")
    port = row(shown, "PORT")
    assert "it is &#x27;x&#x27;" in port
    assert port.endswith("default: what was given is wrong")
    assert settings_in_force().count == 2


def test_html_in_a_setting_is_text(admin_client: Client, settings: Any) -> None:
    settings.OPENAI_MODEL = "<script>alert(1)</script>\u202e"
    shown = admin_client.get(PAGE).content.decode()
    assert "<script>alert(1)" not in shown
    assert "&lt;script&gt;alert(1)" in shown


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


def test_one_character_is_singular() -> None:
    assert secret_shown("x") == "set, 1 character"


def test_short_values_do_not_eat_words_of_a_problem() -> None:
    text = str(Error("the port is the value secret-value").msg)
    assert without_secrets(text, ["the", "secret-value"]) == "the port is the value •••"


def test_origins_name_the_source_of_each_value() -> None:
    env = Environment(values={"A": "1", "B": "2", "C": " "}, config={"C": 3, "B": 9})
    assert {name: env.origin(name, {"A", "C"}) for name in "ABCD"} == {
        "A": "environment",
        "B": ".env",
        "C": "config.json",
        "D": "default",
    }


def test_a_limit_that_the_models_server_reported_is_told_with_what_to_do(
    admin_client: Client, settings: Any
) -> None:
    settings.CHAT_MODEL, settings.OPENAI_MODEL = "openai", "small-model"
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    assert "small-model refused" not in row(
        admin_client.get(PAGE).content.decode(), "MAX_CONTEXT_TOKENS"
    )
    configured_context_limit().learn(2_345)
    shown = row(admin_client.get(PAGE).content.decode(), "MAX_CONTEXT_TOKENS")
    assert "the server of small-model refused a prompt" in shown
    assert "kept within 2345 tokens" in shown
    assert "Set MAX_CONTEXT_TOKENS to 2345" in shown
    assert "1 problem" in admin_client.get("/admin/operations/").content.decode()
    # Where staff have set a lower one, there is nothing to do.
    settings.MAX_CONTEXT_TOKENS = 2_000
    shown = row(admin_client.get(PAGE).content.decode(), "MAX_CONTEXT_TOKENS")
    assert "refused" not in shown
