"""The name that staff give a person: where it shows, who gives it, and what becomes of it."""

from __future__ import annotations

import pytest
from django.test import Client

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import Chat, Note
from tests.dashboard.staff import staff_with
from tests.forms import opened, save
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
SEE = "sessions_app.view_chat"
REVIEW = "sessions_app.review_chat"
NAME = "דנה מהמאפייה"


def edit(chat: Chat) -> str:
    return f"/admin/contacts/{chat.pk}/edit/"


@pytest.fixture
def dana(world: World) -> Chat:
    world.say(CLIENT, "hello")
    return world.chat(CLIENT)


def test_a_name_by_staff_is_shown_everywhere_and_found(admin_client: Client, dana: Chat) -> None:
    answer = save(admin_client, edit(dana), {"staff_name": NAME}, follow=True)
    assert answer.redirect_chain == [(f"/admin/contacts/{dana.pk}/", 302)]
    assert "The contact was saved." in answer.content.decode()
    for page in (
        f"/admin/contacts/{dana.pk}/",
        "/admin/contacts/?q=דנה",
        "/admin/sessions_app/chat/?q=דנה",
        f"/admin/sessions_app/chat/{dana.pk}/conversation/",
        f"/admin/sessions_app/forgetrun/person/{dana.pk}/",
        "/admin/sessions_app/turn/?q=דנה",
    ):
        assert NAME in admin_client.get(page).content.decode().replace('value="דנה"', ""), page


def test_whatsapp_does_not_replace_it(admin_client: Client, world: World, dana: Chat) -> None:
    save(admin_client, edit(dana), {"staff_name": NAME})
    party = Party(phone=CLIENT.partition("@")[0], name="🌸 D 🌸")
    world.receive(message_from(CLIENT, "hello", party=party))
    dana.refresh_from_db()
    assert (dana.staff_name, dana.client_name) == (NAME, "🌸 D 🌸")
    assert "🌸 D 🌸" in admin_client.get(f"/admin/contacts/{dana.pk}/").content.decode()


def test_an_empty_name_brings_whatsapps_back(admin_client: Client, dana: Chat) -> None:
    save(admin_client, edit(dana), {"staff_name": NAME})
    save(admin_client, edit(dana), {"staff_name": ""})
    shown = admin_client.get("/admin/contacts/").content.decode()
    assert NAME not in shown
    assert "Test User" in shown


def test_the_change_is_audited_without_the_name(admin_client: Client, dana: Chat) -> None:
    save(admin_client, edit(dana), {"staff_name": NAME})
    save(admin_client, edit(dana), {"staff_name": NAME})
    event = AuditEvent.objects.get(action="chat.update")
    assert (event.actor, event.details) == ("admin", {"fields": ["staff_name"]})
    assert "A chat was changed" in admin_client.get(f"/admin/contacts/{dana.pk}/").content.decode()


def test_only_reviewers_may_change_it(dana: Chat) -> None:
    reader = staff_with(SEE)
    assert reader.get(edit(dana)).status_code == 403
    assert reader.post(edit(dana), {"staff_name": NAME}).status_code == 403
    assert edit(dana) not in reader.get(f"/admin/contacts/{dana.pk}/").content.decode()
    reviewer = staff_with(SEE, REVIEW, name="noa")
    assert edit(dana) in reviewer.get(f"/admin/contacts/{dana.pk}/").content.decode()
    assert save(reviewer, edit(dana), {"staff_name": NAME}).status_code == 302


def test_too_long_a_name_is_refused_with_what_was_typed(admin_client: Client, dana: Chat) -> None:
    answer = save(admin_client, edit(dana), {"staff_name": "x" * 256})
    assert answer.status_code == 200
    assert "x" * 256 in answer.content.decode()
    dana.refresh_from_db()
    assert not dana.staff_name


def test_who_was_erased_meanwhile_is_not_saved(admin_client: Client, dana: Chat) -> None:
    form = opened(admin_client, edit(dana))
    dana.delete()
    assert admin_client.post(edit(dana), {**form, "staff_name": NAME}).status_code == 404


def test_two_chats_that_are_one_person_keep_the_name(
    admin_client: Client, world: World, dana: Chat
) -> None:
    world.say(OTHER_CLIENT, "me too")
    younger = world.chat(OTHER_CLIENT)
    save(admin_client, edit(younger), {"staff_name": NAME})
    younger.refresh_from_db()
    assert chat_merge(dana, younger).staff_name == NAME


def test_a_note_is_written_on_the_page(dana: Chat) -> None:
    reviewer = staff_with(SEE, REVIEW, "sessions_app.view_message")
    page = f"/admin/contacts/{dana.pk}/"
    assert 'value="note"' in reviewer.get(page).content.decode()
    review = f"/admin/sessions_app/chat/{dana.pk}/review/"
    values = {"do": "note", "text": "Call before noon", "next": f"{page}#notes"}
    answer = reviewer.post(review, values, follow=True)
    assert answer.redirect_chain[0][0] == f"{page}#notes"
    assert "Call before noon" in answer.content.decode()
    assert Note.objects.get().chat_id == dana.pk
