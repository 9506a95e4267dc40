"""The assistant's profile: saved without losing anybody's words, and previewed before it is."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import AssistantProfile
from tests.dashboard.staff import staff_with
from tests.dashboard.test_replay_page import NASTY
from tests.shown import words_of
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db
PAGE = "/admin/sessions_app/assistantprofile/1/change/"
PREVIEW = "/admin/sessions_app/assistantprofile/preview/"
CHANGE = "sessions_app.change_assistantprofile"
VALUES = {
    "name": "Dina",
    "persona": "You are kind.",
    "business_facts": "We sell flowers.",
    "opening_hours": "Sunday to Thursday",
    "languages": "en, he",
}


def seen(client: Client) -> str:
    """The stamp of a form that is shown now."""
    found = re.search(r'name="seen" value="([^"]*)"', client.get(PAGE).content.decode())
    assert found is not None
    return html.unescape(found[1])


def save(client: Client, version: str, **changes: str) -> Any:
    return client.post(PAGE, {**VALUES, "seen": version, **changes})


def test_what_is_saved_goes_into_the_next_prompt(admin_client: Client, world: World) -> None:
    assert save(admin_client, seen(admin_client), persona="One\r\nTwo").status_code == 302
    assert AssistantProfile.objects.get().persona == "One\nTwo"
    world.say(CLIENT, "Hello")
    assert "You are Dina" in world.prompt()[0].content
    event = AuditEvent.objects.get(action="profile.update")
    assert event.details["fields"] == ["business_facts", "name", "opening_hours", "persona"]


def test_saving_nothing_new_changes_nothing(admin_client: Client) -> None:
    save(admin_client, seen(admin_client))
    before = AssistantProfile.objects.get().updated_at
    assert save(admin_client, seen(admin_client)).status_code == 302
    assert AssistantProfile.objects.get().updated_at == before
    assert AuditEvent.objects.filter(action="profile.update").count() == 1


def test_of_two_who_edit_at_once_nobodys_words_are_lost(admin_client: Client) -> None:
    version = seen(admin_client)
    save(admin_client, version, business_facts="Roses <b>cost</b> 5")
    answer = save(admin_client, version, business_facts="Tulips cost 3")
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "Somebody else saved this meanwhile and changed: About the business." in page
    theirs = re.search(r'id="id_business_facts_error">(.*?)</ul>', page, re.S)
    assert theirs is not None
    assert words_of(theirs[1]).split()[-4:] == ["is:", "Roses", "<b>cost</b>", "5"]
    assert "Tulips cost 3</textarea>" in page
    assert AssistantProfile.objects.get().business_facts == "Roses <b>cost</b> 5"
    again = re.search(r'name="seen" value="([^"]*)"', page)
    assert again is not None
    answer = save(admin_client, html.unescape(again[1]), business_facts="Tulips cost 3")
    assert answer.status_code == 302
    assert AssistantProfile.objects.get().business_facts == "Tulips cost 3"


def test_a_form_without_a_stamp_overwrites_nothing(admin_client: Client) -> None:
    save(admin_client, seen(admin_client))
    answer = save(admin_client, "", name="Other")
    assert (answer.status_code, "This page is damaged" in answer.content.decode()) == (409, True)
    assert AssistantProfile.objects.get().name == "Dina"


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


def test_the_preview_says_what_the_next_prompt_says(admin_client: Client, world: World) -> None:
    form = {**VALUES, "seen": seen(admin_client)}
    part = admin_client.post(PREVIEW, form, headers={"X-Part": "yes"}).content.decode()
    save(admin_client, form["seen"])
    world.say(CLIENT, "Hello")
    lines = [line for line in world.prompt()[0].content.splitlines() if line.strip()]
    shown = words_of(part)
    for line in lines:
        if not line.startswith("It is "):
            assert words_of(line) in shown


def test_for_a_script_the_preview_comes_alone(admin_client: Client) -> None:
    form = {**VALUES, "seen": seen(admin_client)}
    answer = admin_client.post(PREVIEW, form, headers={"X-Part": "yes"})
    assert "<html" not in answer.content.decode()
    wrong = admin_client.post(PREVIEW, {**form, "name": ""}, headers={"X-Part": "yes"})
    assert wrong.status_code == 422
    assert "Name:" in words_of(wrong.content.decode())
    assert admin_client.post(PREVIEW, {**form, "name": ""}).status_code == 422


def test_hostile_texts_are_shown_as_text(admin_client: Client) -> None:
    form = {**VALUES, "persona": NASTY[:20_000], "kind": NASTY, "language": NASTY}
    page = admin_client.post(PREVIEW, {**form, "seen": NASTY[:60]}).content.decode()
    assert "<script>alert" not in page
    assert page.count("&lt;script&gt;alert") >= 2


def test_who_may_only_view_changes_nothing(db: None) -> None:
    client = staff_with("sessions_app.view_assistantprofile")
    page = client.get(PAGE).content.decode()
    assert "disabled" in page
    assert ">Save<" not in page
    assert client.post(PAGE, VALUES).status_code == 403
    assert client.post(PREVIEW, VALUES).status_code == 403
    assert AssistantProfile.objects.get().name == "DeniDin"


def test_without_the_right_nothing_is_shown(db: None) -> None:
    client = staff_with("sessions_app.view_turn")
    for answer in (client.get(PAGE), client.post(PAGE, VALUES), client.post(PREVIEW, VALUES)):
        assert answer.status_code == 403
    assert client.get("/admin/sessions_app/assistantprofile/").status_code == 403


def test_with_the_right_it_is_saved(db: None) -> None:
    client = staff_with(CHANGE)
    assert save(client, seen(client)).status_code == 302
    assert client.get(PREVIEW).headers["Location"] == "/admin/sessions_app/assistantprofile/"


@pytest.mark.parametrize("key", ["2", "0", "x"])
def test_there_is_one_profile(admin_client: Client, key: str) -> None:
    answer = admin_client.get(f"/admin/sessions_app/assistantprofile/{key}/change/", follow=True)
    assert answer.redirect_chain[-1][0] == PAGE
