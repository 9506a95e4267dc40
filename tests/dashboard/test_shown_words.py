"""Stored codes are shown in words of the reader's language: outcomes, roles, commands, numbers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin import site
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import translation

from memories_app.models import MergeProposal
from memoryproject.foundation.admin_kit.display import cost_shown
from sessions_app.inbound.admin import outcome_shown
from sessions_app.models import (
    Chat,
    ForgetReceipt,
    InboundDelivery,
    OutboundPart,
    SummarizationMetadata,
    Turn,
)
from tests.world import CLIENT, GODFATHER, World

pytestmark = pytest.mark.django_db
HEBREW: Any = {"accept-language": "he"}


def test_a_delivery_says_in_words_what_became_of_it(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    outcomes = ("status read", "reaction taken away", "stored", "not processed: DataError")
    for number, outcome in enumerate(outcomes):
        InboundDelivery.objects.create(
            provider="cloud", delivery_key=f"key-{number}", event="StatusUpdate", outcome=outcome
        )
    address = "/admin/sessions_app/inbounddelivery/"
    listed = admin_client.get(address).content.decode()
    for words in (">Read<", "reaction removed", "not processed: DataError"):
        assert words in listed
    assert "status read" not in listed
    assert "נשמר" in admin_client.get(address, headers=HEBREW).content.decode()
    newest = InboundDelivery.objects.get(delivery_key="key-0")
    assert "status read" not in admin_client.get(f"{address}{newest.pk}/change/").content.decode()


def test_an_unknown_outcome_is_shown_as_it_is_stored() -> None:
    assert outcome_shown("some later outcome") == "some later outcome"
    assert outcome_shown("status read of a message that is not here").endswith(": Read")


def test_a_prompt_names_who_speaks(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "what time is it")
    page = f"/admin/sessions_app/turn/{Turn.objects.latest('id').pk}/change/"
    assert '<bdi class="role">System</bdi>' in admin_client.get(page).content.decode()
    hebrew = admin_client.get(page, headers=HEBREW).content.decode()
    assert '<bdi class="role">מערכת</bdi>' in hebrew


def test_a_receipt_is_called_by_its_kind_in_words(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    receipt = ForgetReceipt.objects.create(
        kind="chat", object_id=world.chat(CLIENT).pk, actor_kind="staff", probe="absent"
    )
    page = f"/admin/sessions_app/forgetreceipt/{receipt.pk}/change/"
    shown = admin_client.get(page).content.decode()
    (crumb,) = re.findall(r"<bdi>(Chat, \d+ \w+ \d{4}, \d\d:\d\d)</bdi></nav>", shown)
    assert shown.count(crumb) > 1, "the title, too"


def test_thousands_are_set_apart_in_both_languages() -> None:
    for language in ("en", "he"):
        with translation.override(language):
            assert "21,496.00" in cost_shown(21496)


def test_only_permissions_with_pages_are_offered(admin_client: Client) -> None:
    """Those of libraries have English names, and grant nothing here."""
    group = Group.objects.order_by("pk").first()
    assert group is not None
    for page in (f"/admin/auth/group/{group.pk}/change/", "/admin/auth/group/add/"):
        form = admin_client.get(page).content.decode()
        assert "Memories: view" in form
        assert "Access attempt" not in form
        assert "TOTP device" not in form


def test_history_is_the_audit_log_of_the_object_for_those_who_may_read_it(
    admin_client: Client, client: Client, django_user_model: Any, world: World
) -> None:
    """Django's own history was empty: the forms change almost nothing here."""
    world.say(CLIENT, "hello")
    session = world.session(CLIENT)
    page = f"/admin/sessions_app/chatsession/{session.pk}/change/"
    address = f"/admin/audit/auditevent/?q={session.pk}"
    assert f'href="{address}"' in admin_client.get(page).content.decode()
    assert "A session began" in admin_client.get(address).content.decode()

    viewer = django_user_model.objects.create_user("viewer", is_staff=True)
    viewer.groups.add(Group.objects.get(name="Viewer"))
    client.force_login(viewer)
    seen = client.get(page).content.decode()
    assert str(session.pk) in seen
    assert "auditevent" not in seen


def test_the_page_that_verifies_is_below_the_audit_log(admin_client: Client) -> None:
    page = admin_client.get("/admin/audit/auditevent/verify/").content.decode()
    assert '<a href="/admin/audit/auditevent/">Audit log</a>' in page


def test_lists_of_messages_name_who_wrote(
    admin_client: Client, admin_user: User, world: World, settings: Any
) -> None:
    """The person by name, or by role where it isn't known; the assistant; staff by name."""
    settings.GODFATHER_PHONE = frozenset({GODFATHER})
    world.say(CLIENT, "hello")
    world.say(GODFATHER, "good morning")
    Chat.objects.filter(whatsapp_chat=GODFATHER).update(client_name="")
    chat = world.chat(CLIENT)
    reply = {"text": "Noa will call you", "key": "00000000-0000-4000-8000-000000000009"}
    admin_client.post(f"/admin/sessions_app/turn/takeover/{chat.pk}/reply/", reply)

    address = "/admin/sessions_app/message/"
    assert authors(admin_client, address) == {
        "hello": "Test User",
        "good morning": "Owner",
        "Noa will call you": admin_user.username,
    }
    sheet = admin_client.get(f"{address}?_csv=1").content.decode()
    assert "Test User" in sheet
    assert admin_user.username in sheet
    hebrew = admin_client.get(address, headers=HEBREW).content.decode()
    assert "בעל העסק" in hebrew

    Chat.objects.filter(whatsapp_chat=CLIENT).update(client_name="")
    assert authors(admin_client, address)["hello"] == "Client"
    User.objects.filter(pk=admin_user.pk).update(username="noa")
    in_session = f"{address}?session__session_id__exact={world.session(CLIENT).pk}"
    assert authors(admin_client, in_session)["Noa will call you"] == "noa"


def authors(client: Client, address: str) -> dict[str, str]:
    """Who wrote each message of a list that isn't the assistant's, by its text."""
    page = client.get(address)
    rows = page.context["cl"].result_list
    shown = re.findall(r"field-author[^>]*>\s*<bdi>([^<]*)</bdi>", page.content.decode())
    assert len(shown) == len(rows)
    found = {row.content: name for row, name in zip(rows, shown, strict=True)}
    return {text: name for text, name in found.items() if name != "Assistant"}


def test_a_prompt_names_the_person(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "what time is it")
    page = f"/admin/sessions_app/turn/{Turn.objects.latest('id').pk}/change/"
    assert '<bdi class="role">Test User</bdi>' in admin_client.get(page).content.decode()


# Names of columns and words of ours that say nothing to staff.
ODD = re.compile(r"\b(told|order_num|num|godfather|gone|whatsapp chat)\b|^(is|was) ")


def test_fields_and_columns_are_named_in_plain_words(admin_client: Client) -> None:
    """Those of all our models, and of all lists and pages of the admin."""
    admin_client.get("/admin/")  # registers the pages
    ours = ("memoryproject", "sessions_app", "memories_app", "cards_app")
    named = [
        (f"{model.__name__}.{field.name}", str(text))
        for model in apps.get_models()
        if model.__module__.startswith(ours)
        for field in model._meta.fields
        for text in (field.verbose_name, field.help_text)
    ]
    named += [
        (f"{type(page).__name__}.{name}", str(getattr(column, "short_description", "")))
        for page in site._registry.values()
        for name, column in vars(type(page)).items()
    ]
    assert len(named) > 1_000
    odd = [f"{where}: {text}" for where, text in named if ODD.search(text)]
    assert not odd, "\n".join(odd)


def test_the_kind_of_a_message_is_shown_in_words(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "look", kind="image")
    said, answer = world.messages(CLIENT)
    for message, word in ((said, "Picture"), (answer, "Text")):
        page = admin_client.get(f"/admin/sessions_app/message/{message.pk}/change/")
        assert re.search(rf"readonly[^>]*>\s*{word}\s*<", page.content.decode())


def test_the_conversation_leads_to_the_settings_of_its_chat(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "hello")
    chat = f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/"
    page = admin_client.get(f"{chat}conversation/").content.decode()
    assert f'<a href="{chat}change/">chat settings</a>' in page


def test_records_are_called_by_words_of_the_readers_language(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "hello")
    part = OutboundPart.objects.get()
    page = f"/admin/sessions_app/outboundpart/{part.pk}/change/"
    assert f"part 1 of answer {part.turn_id}" in admin_client.get(page).content.decode()
    proposal = MergeProposal(kind="merge", state="open", pk=7)
    summary = SummarizationMetadata(number=1, first_order=1, last_order=12)
    assert [str(proposal), str(summary)] == ["Merge 7 (Open)", "summary 1: messages 1 to 12"]
    with translation.override("he"):
        assert "Merge" not in str(proposal)
        assert "סיכום 1" in str(summary)
