"""Settings that are changed in the browser, and the set-up that leads through them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.test import Client, override_settings

from memoryproject import folders
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.staff_site.setup.step_forms import owner_id
from sessions_app.models import AssistantProfile, StoredSetting
from sessions_app.stored_settings import stored_problems, stored_settings_look
from tests.dashboard.staff import page
from tests.shown import words_of
from tests.staff.people import person

pytestmark = pytest.mark.django_db
SETUP = "/admin/setup/"
KEY = "sk-tests-0123456789-abcd"
CLOUD = {
    "WHATSAPP_CLOUD_PHONE_NUMBER_ID": "100000000000007",
    "WHATSAPP_CLOUD_ACCESS_TOKEN": "access-token-of-tests",
    "WHATSAPP_CLOUD_APP_SECRET": "app-secret-of-tests",
}


@pytest.fixture(autouse=True)
def as_before(db: None) -> Iterator[None]:
    """What a test stored isn't in use in the next one."""
    with override_settings(SHOW_SETUP=True):
        yield
        StoredSetting.objects.all().delete()
        stored_settings_look(at_once=True)


def setting(name: str) -> str:
    return f"/admin/operations/settings/{name}/"


def shown(client: Client, address: str) -> str:
    return words_of(page(client, address))


def mark(client: Client, address: str) -> str:
    """What a form remembers of the state that it shows."""
    found = re.search(r'name="seen"(?: value="([^"]*)")?', page(client, address))
    assert found
    return found[1] or ""


def change(client: Client, name: str, value: str, **more: str) -> Any:
    return client.post(setting(name), {name: value, "seen": "", "do": "store", **more})


def test_a_changed_setting_is_in_use_and_removed_again(admin_client: Client, settings: Any) -> None:
    assert change(admin_client, "RECALL_TOP_K", "7").status_code == 302
    assert settings.RECALL_TOP_K == 7
    assert "stored by admin" in shown(admin_client, "/admin/operations/settings/")
    seen = mark(admin_client, setting("RECALL_TOP_K"))

    removed = admin_client.post(setting("RECALL_TOP_K"), {"seen": seen, "do": "remove"})

    assert (removed.status_code, settings.RECALL_TOP_K) == (302, 5)
    assert (
        list(AuditEvent.objects.filter(action="setting.change").values_list("actor", "details"))
        == [("admin", {"names": ["RECALL_TOP_K"]})] * 2
    )


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("RECALL_TOP_K", "many", "RECALL_TOP_K must be a whole number from 1 to 100; it is 'many'"),
        ("BUSINESS_TIME_ZONE", "Mars/Olympus", "BUSINESS_TIME_ZONE must be"),
        ("OPENAI_BASE_URL", "ftp://x", "must be a URL"),
        ("OPENAI_MODEL", "a\x0bb", "must be one line"),
        ("OPENAI_MODEL", "x" * 4_001, "at most 4000 characters"),
        ("CHAT_MODEL", "openai", "CHAT_MODEL is openai, but OPENAI_API_KEY is not set."),
        ("CHAT_MODEL", "oracle", "Select a valid choice"),
        ("WHATSAPP_PROVIDER", "cloud", "WHATSAPP_PROVIDER is cloud, but not set"),
        ("CLIENTS_DAILY_BUDGET", "ten", "amount of money"),
    ],
)
def test_a_wrong_value_is_refused_in_words(
    admin_client: Client, name: str, value: str, says: str
) -> None:
    refused = change(admin_client, name, value)
    assert refused.status_code == 422
    assert says in words_of(refused.content.decode())
    assert not StoredSetting.objects.exists()


def test_a_secret_is_encrypted_and_never_shown_again(admin_client: Client, settings: Any) -> None:
    change(admin_client, "OPENAI_API_KEY", f"\u200e {KEY}\u202c ")
    assert settings.OPENAI_API_KEY == KEY
    row = StoredSetting.objects.get()
    assert KEY not in row.value
    pages = page(admin_client, setting("OPENAI_API_KEY")) + page(
        admin_client, "/admin/operations/settings/"
    )
    assert KEY not in pages
    assert "ends in …abcd" in words_of(pages)
    assert KEY not in str(list(AuditEvent.objects.values_list("details", flat=True)))
    # An empty field leaves it.
    change(admin_client, "OPENAI_API_KEY", "", seen=mark(admin_client, setting("OPENAI_API_KEY")))
    assert settings.OPENAI_API_KEY == KEY


def test_a_secret_of_another_secret_key_is_named_and_can_be_entered_again(
    admin_client: Client, settings: Any
) -> None:
    change(admin_client, "OPENAI_API_KEY", KEY)
    row = StoredSetting.objects.get()
    with override_settings(SECRET_KEY="another key of tests, long enough to be one"):
        admin_client.force_login(User.objects.get())
        row.save()
        StoredSetting.objects.create(name="RECALL_TOP_K", value="9", changed_by="x")
        stored_settings_look(at_once=True)
        assert (settings.OPENAI_API_KEY, settings.RECALL_TOP_K) == ("", 9)
        for address in ("/admin/operations/settings/", f"{SETUP}model/"):
            assert "SECRET_KEY is another one" in shown(admin_client, address)
        assert "Leave it empty to keep it" not in shown(admin_client, setting("OPENAI_API_KEY"))
        change(
            admin_client,
            "OPENAI_API_KEY",
            "new-key-of-tests-0123",
            seen=mark(admin_client, setting("OPENAI_API_KEY")),
        )
        assert settings.OPENAI_API_KEY == "new-key-of-tests-0123"
        assert not stored_problems()


def test_the_server_starts_with_secrets_of_another_secret_key(
    admin_client: Client, settings: Any
) -> None:
    admin_client.post(f"{SETUP}whatsapp/", {"provider": "cloud", **CLOUD})
    with override_settings(SECRET_KEY="another key of tests, long enough to be one"):
        StoredSetting.objects.create(name="CHAT_MODEL", value="openai", changed_by="x")
        call_command("prepare", stdout=StringIO())
        assert (settings.WHATSAPP_PROVIDER, settings.CHAT_MODEL) == ("cloud", "openai")
        assert "WHATSAPP_CLOUD_ACCESS_TOKEN" in stored_problems()


def test_what_env_sets_wins_and_says_so(admin_client: Client, settings: Any) -> None:
    settings.CONFIG_ORIGINS = {**settings.CONFIG_ORIGINS, "RECALL_TOP_K": ".env"}
    settings.RECALL_TOP_K = 3
    StoredSetting.objects.create(name="RECALL_TOP_K", value="7", changed_by="admin")
    change(admin_client, "RECALL_MIN_SIMILARITY", "0.5")
    assert (settings.RECALL_TOP_K, settings.RECALL_MIN_SIMILARITY) == (3, 0.5)
    assert "Set in .env, which wins." in shown(admin_client, "/admin/operations/settings/")
    assert "Set in .env, which wins." in shown(admin_client, setting("RECALL_TOP_K"))


def test_of_two_administrators_the_second_one_is_told(admin_client: Client, settings: Any) -> None:
    first = mark(admin_client, setting("RECALL_TOP_K"))
    change(admin_client, "RECALL_TOP_K", "7", seen=first)
    assert change(admin_client, "RECALL_TOP_K", "7", seen=first).status_code == 302
    late = change(admin_client, "RECALL_TOP_K", "8", seen=first)
    assert late.status_code == 409
    assert "Somebody else changed this meanwhile" in words_of(late.content.decode())
    assert settings.RECALL_TOP_K == 7


def test_only_changeable_ones_and_administrators(admin_client: Client) -> None:
    for name in ("SECRET_KEY", "DATABASE_URL", "NONSENSE"):
        assert admin_client.get(setting(name)).status_code == 404
        assert change(admin_client, name, "x").status_code == 404
    viewer = Client()
    viewer.force_login(person("vera", "Viewer"))
    for address in (setting("RECALL_TOP_K"), SETUP, f"{SETUP}owner/"):
        assert viewer.get(address).status_code == 403
    assert viewer.get("/admin/").status_code == 200
    assert "set-up" not in shown(viewer, "/admin/")


# The set-up.


def test_the_first_login_leads_to_it_until_it_is_closed(admin_client: Client) -> None:
    assert admin_client.get("/admin/")["Location"] == SETUP
    assert admin_client.get(SETUP)["Location"] == f"{SETUP}owner/"
    assert "The owner's number" in shown(admin_client, f"{SETUP}owner/")
    # It is no trap.
    assert "The set-up isn't finished." in shown(admin_client, "/admin/")
    assert admin_client.post(f"{SETUP}close/").status_code == 302
    again = Client()
    again.force_login(User.objects.get())
    assert "set-up isn't finished" not in shown(again, "/admin/")
    assert again.get(f"{SETUP}owner/").status_code == 200


@pytest.mark.parametrize(
    ("typed", "country", "found"),
    [
        ("+972 50-123 4567", "", "972501234567@c.us"),
        ("00972501234567", "", "972501234567@c.us"),
        ("972501234567", "", "972501234567@c.us"),
        ("050-123-4567", "IL", "972501234567@c.us"),
        ("+49 (0)151 23456789", "IL", "4915123456789@c.us"),
        ("(202) 555-0143", "US", "12025550143@c.us"),
        ("٠٥٠١٢٣٤٥٦٧", "IL", "972501234567@c.us"),
        ("972501234567@c.us", "US", "972501234567@c.us"),
        ("06 1234 5678", "IT", "390612345678@c.us"),
        ("07 01 23 45 67", "CI", "2250701234567@c.us"),
    ],
)
def test_the_owner_is_known_in_any_spelling(typed: str, country: str, found: str) -> None:
    assert owner_id(typed, country) == found


@pytest.mark.parametrize(("typed", "country"), [("050-123-4567", "US"), ("050-123-4567", "")])
def test_a_number_of_another_country_than_the_guessed_one_is_refused(
    typed: str, country: str
) -> None:
    with pytest.raises(ValidationError, match="Write it with its country code"):
        owner_id(typed, country)


def test_the_owner_is_stored_and_shown(admin_client: Client, settings: Any) -> None:
    typed = {"GODFATHER_PHONE": "\u2066+972 50 123 4567\u2069; 0501234568", "country": "IL"}
    assert admin_client.post(f"{SETUP}owner/", typed).status_code == 302
    assert {"972501234567@c.us", "972501234568@c.us"} == settings.GODFATHER_PHONE
    assert "972501234567@c.us" in shown(admin_client, f"{SETUP}owner/")
    for wrong in ("", "call me", "12"):
        refused = admin_client.post(f"{SETUP}owner/", {**typed, "GODFATHER_PHONE": wrong})
        assert refused.status_code == 422, wrong


def test_the_business_is_stored_in_profile_and_settings(
    admin_client: Client, settings: Any
) -> None:
    typed = {
        "business_name": "בית קפה",
        "business_facts": "Coffee & cake",
        "opening_hours": "",
        "main_language": "he",
        "BUSINESS_TIME_ZONE": "Asia/Jerusalem",
    }
    assert admin_client.post(f"{SETUP}business/", typed)["Location"] == f"{SETUP}model/"
    profile = AssistantProfile.objects.get()
    assert (profile.business_name, profile.languages) == ("בית קפה", "he, en")
    assert settings.BUSINESS_TIME_ZONE == "Asia/Jerusalem"
    # Nothing of it, where a part is wrong or another administrator was faster.
    for wrong, status in (({"BUSINESS_TIME_ZONE": "nowhere"}, 422), ({"was": "2001"}, 409)):
        refused = admin_client.post(
            f"{SETUP}business/", {**typed, "business_name": "Other", **wrong}
        )
        assert refused.status_code == status
    assert AssistantProfile.objects.get().business_name == "בית קפה"


def test_another_server_is_not_sent_the_key_of_the_first(
    admin_client: Client, settings: Any
) -> None:
    typed = {"preset": "openai", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "", "OPENAI_BASE_URL": ""}
    assert admin_client.post(f"{SETUP}model/", typed).status_code == 302
    assert (settings.CHAT_MODEL, settings.OPENAI_API_KEY) == ("openai", KEY)
    typed = {
        **typed,
        "preset": "ollama",
        "OPENAI_API_KEY": "",
        "seen": mark(admin_client, f"{SETUP}model/"),
    }
    assert admin_client.post(f"{SETUP}model/", typed).status_code == 422
    typed["OPENAI_MODEL"] = "llama3.1"
    assert admin_client.post(f"{SETUP}model/", typed).status_code == 302
    assert settings.OPENAI_BASE_URL == "http://127.0.0.1:11434/v1"
    assert settings.OPENAI_API_KEY == ""
    admin_client.post(f"{SETUP}model/", {"do": "offline"})
    assert settings.CHAT_MODEL == "offline"


def test_whatsapp_shows_address_and_token_until_the_handshake(
    admin_client: Client, settings: Any
) -> None:
    assert admin_client.post(f"{SETUP}whatsapp/", {"provider": "cloud"}).status_code == 422
    saved = admin_client.post(f"{SETUP}whatsapp/", {"provider": "cloud", **CLOUD})
    assert saved.status_code == 302
    token = settings.WHATSAPP_CLOUD_VERIFY_TOKEN
    assert len(token) >= 32
    step = page(admin_client, saved["Location"])
    assert token in step
    assert "http://testserver/webhooks/whatsapp/cloud/" in step
    assert "can't reach this address" in words_of(step)
    assert "No handshake yet" in words_of(step)

    asked = {"hub.mode": "subscribe", "hub.verify_token": token, "hub.challenge": "42"}
    assert Client().get("/webhooks/whatsapp/cloud/", asked).content == b"42"

    step = page(admin_client, saved["Location"])
    assert "Handshake seen" in words_of(step)
    assert token not in step
    cache.clear()


@pytest.mark.parametrize(
    ("name", "typed", "problem"),
    [
        ("WHATSAPP_CLOUD_PHONE_NUMBER_ID", "+1 555 0100", "has only digits"),
        ("WHATSAPP_BUSINESS_ACCOUNT_ID", "My shop", "has only digits"),
        ("WHATSAPP_CLOUD_ACCESS_TOKEN", "Bearer EAAGword", "There is a space in it"),
        ("GREEN_API_ID_INSTANCE", "71031x", "has only digits"),
    ],
)
def test_what_is_no_id_and_no_token_is_refused(
    admin_client: Client, name: str, typed: str, problem: str
) -> None:
    green = {"GREEN_API_ID_INSTANCE": "7103123456", "GREEN_API_TOKEN": "t" * 20}
    values = {"provider": "green", **green} if name in green else {"provider": "cloud", **CLOUD}
    refused = admin_client.post(f"{SETUP}whatsapp/", {**values, name: typed})
    assert refused.status_code == 422
    assert problem in words_of(refused.content.decode())
    assert not StoredSetting.objects.exists()


def test_a_token_of_the_environment_is_no_wrong_one(admin_client: Client, settings: Any) -> None:
    settings.WHATSAPP_CLOUD_ACCESS_TOKEN = "EAAGword"
    origins = {**settings.CONFIG_ORIGINS, "WHATSAPP_CLOUD_ACCESS_TOKEN": ".env"}
    settings.CONFIG_ORIGINS = origins
    saved = admin_client.post(f"{SETUP}whatsapp/", {"provider": "cloud", **CLOUD})
    assert saved.status_code == 302


def test_the_last_step_names_the_command_of_this_installation(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "TYPED", "whatsapp-memory")
    assert "whatsapp-memory chat" in shown(admin_client, f"{SETUP}end/")


@pytest.mark.parametrize("step", ["owner", "business", "model", "whatsapp", "facts", "end"])
def test_every_step_is_there_in_hebrew(admin_client: Client, step: str) -> None:
    admin_client.cookies["django_language"] = "he"
    assert 'dir="rtl"' in page(admin_client, f"{SETUP}{step}/")
    assert admin_client.get(f"{SETUP}nonsense/").status_code == 404
