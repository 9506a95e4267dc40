"""Two of the staff at one form, of each kind: nobody overwrites unseen what the other saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.outgoing_webhooks.models import WebhookEndpoint
from sessions_app.models import AssistantProfile, Chat, Label, Note
from tests.forms import opened, stamped_form
from tests.remembering import remember
from tests.staff.furnish import furnish, rows
from tests.threads import begin_all_blocked, begin_blocked
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db

MEANWHILE = "Somebody else saved this meanwhile and changed: "


@dataclass(frozen=True)
class Kind:
    """A kind of form: how its row is made, where it is opened (and posted, where that is
    elsewhere), what one changes and what the other, of other fields: (name, value, how the page
    calls the field)."""

    make: Callable[[], Any]
    page: Callable[[Any], str]
    mine: tuple[str, Any, str]
    theirs: tuple[str, Any, str]
    stored: Callable[[Any, str], Any] = getattr
    post: Callable[[Any], str] | None = None
    refused: int = 200

    def posted(self, row: Any) -> str:
        return (self.post or self.page)(row)


def of_admin(model: str) -> Callable[[Any], str]:
    app, _, name = model.partition(".")
    return lambda row: f"/admin/{app}/{name}/{row.pk}/change/"


def of_user(user: User, name: str) -> Any:
    if name == "groups":
        return list(user.groups.values_list("name", flat=True))
    return getattr(user, name)


def of_endpoint(endpoint: WebhookEndpoint, name: str) -> Any:
    if name == "chats":
        chats = Chat.objects.filter(pk__in=endpoint.chat_ids or [])
        return "\n".join(sorted(chats.values_list("whatsapp_chat", flat=True)))
    return getattr(endpoint, name)


def make_note() -> Note:
    """Of whoever is the admin: only its author changes a note."""
    chat = Chat.objects.create(whatsapp_chat=CLIENT, provider="cloud")
    author = User.objects.get(username="admin")
    return Note.objects.create(
        chat=chat, author=author, author_name="admin", text="call back", created_at=timezone.now()
    )


# What only others change, of kinds with one field, is the same field.
KINDS = {
    "label": Kind(
        make=lambda: Label.objects.create(name="Urgent"),
        page=of_admin("sessions_app.label"),
        mine=("name", "Now", "Name"),
        theirs=("colour", "red", "Colour"),
    ),
    "webhook": Kind(
        make=lambda: WebhookEndpoint.objects.create(
            name="crm", url="https://1.1.1.1/hooks", secret="whsec_x"
        ),
        page=of_admin("hooks.webhookendpoint"),
        mine=("name", "erp", "Name"),
        theirs=("chats", CLIENT, "Chats"),
        stored=of_endpoint,
    ),
    "user": Kind(
        make=lambda: User.objects.create_user("vera", is_staff=True),
        page=of_admin("auth.user"),
        mine=("first_name", "Vera", "First name"),
        theirs=("groups", ["Viewer"], "Groups"),
        stored=of_user,
    ),
    "chat": Kind(
        make=lambda: Chat.objects.create(whatsapp_chat=CLIENT, provider="cloud"),
        page=of_admin("sessions_app.chat"),
        mine=("memory_enabled", False, "Memory"),
        theirs=("memory_enabled", True, "Memory"),
    ),
    "contact": Kind(
        make=lambda: Chat.objects.create(whatsapp_chat=CLIENT, provider="cloud"),
        page=lambda chat: f"/admin/contacts/{chat.pk}/edit/",
        mine=("staff_name", "Dana of the bakery", "Name"),
        theirs=("fixed_language", "he", "Language"),
    ),
    "profile": Kind(
        make=lambda: AssistantProfile.objects.get_or_create(pk=1)[0],
        page=of_admin("sessions_app.assistantprofile"),
        mine=("persona", "Kind.\nShort.", "Persona"),
        theirs=("business_facts", "Roses cost 5", "About the business"),
        refused=409,
    ),
    "memory": Kind(
        make=lambda: remember("The price is 35", tags=("a",)),
        page=of_admin("memories_app.memory"),
        mine=("content", "The price is 45", "Content"),
        theirs=("content", "The price is 40", "Content"),
    ),
    "note": Kind(
        make=make_note,
        page=lambda note: f"/admin/sessions_app/chat/{note.chat_id}/conversation/",
        mine=("text", "called back", "The note"),
        theirs=("text", "on it", "The note"),
        post=lambda note: f"/admin/sessions_app/chat/notes/{note.pk}/",
    ),
}
TWO_FIELDS = {name: kind for name, kind in KINDS.items() if kind.mine[0] != kind.theirs[0]}


def given(name: str, value: Any) -> Any:
    """A value as a browser posts it."""
    if name == "groups":
        return [str(Group.objects.get(name=each).pk) for each in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).replace("\n", "\r\n")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture
def other(admin_client: Client, admin_user: User) -> Client:
    """Somebody else who is logged in; of notes, who are one person's, another window."""
    client = Client()
    boss = User.objects.create_superuser("boss")
    client.force_login(boss)
    return client


def who_else(kind: Kind, other: Client) -> Client:
    if kind.post is None:
        return other
    client = Client()
    client.force_login(User.objects.get(username="admin"))
    return client


def send(client: Client, kind: Kind, row: Any, form: Mapping[str, Any]) -> Any:
    return client.post(kind.posted(row), {**form, "do": "edit"})


def told(answer: Any, kind: Kind) -> str:
    """What a refused form says."""
    assert answer.status_code == kind.refused, "refused"
    page: str = answer.content.decode()
    return page


def test_what_somebody_else_saved_meanwhile_is_told_before_it_is_overwritten(
    kind: Kind, admin_client: Client, other: Client
) -> None:
    row = kind.make()
    (mine, my_value, _), (theirs, their_value, their_label) = kind.mine, kind.theirs
    my_form = opened(admin_client, kind.page(row)) | {mine: given(mine, my_value)}
    colleague = who_else(kind, other)
    their_form = opened(colleague, kind.page(row)) | {theirs: given(theirs, their_value)}
    assert send(colleague, kind, row, their_form).status_code == 302

    page = told(send(admin_client, kind, row, my_form), kind)
    assert f"{MEANWHILE}{their_label}." in page
    row.refresh_from_db()
    assert kind.stored(row, theirs) == their_value
    if mine != theirs:
        assert kind.stored(row, mine) != my_value, "nothing of it is saved"

    again = stamped_form(page)
    assert again[mine] == [given(mine, my_value)], "what was typed is there"
    assert send(admin_client, kind, row, again).status_code == 302, "a decision now"
    row.refresh_from_db()
    assert kind.stored(row, mine) == my_value
    if mine != theirs:
        assert kind.stored(row, theirs) == their_value, "nobody undid it"


@pytest.mark.parametrize("name", TWO_FIELDS)
def test_both_values_are_shown(name: str, admin_client: Client, other: Client) -> None:
    kind = KINDS[name]
    row = kind.make()
    field, value, label = kind.mine
    my_form = opened(admin_client, kind.page(row)) | {field: given(field, value)}
    another = "Otherwise"
    assert send(other, kind, row, my_form | {field: another}).status_code == 302
    page = told(send(admin_client, kind, row, my_form), kind)
    assert f"{MEANWHILE}{label}." in page
    assert f'<span class="said" dir="auto">{another}</span>' in page
    assert stamped_form(page)[field] == [given(field, value)]


@pytest.mark.parametrize(
    ("name", "stamp"),
    [(name, stamp) for name in KINDS for stamp in (None, '{"name": "x"}')]
    + [("label", stamp) for stamp in ("", "{", "null", "\x00", "[" * 9_999)],
)
def test_a_damaged_stamp_is_asked_about(name: str, stamp: str | None, admin_client: Client) -> None:
    kind = KINDS[name]
    row = kind.make()
    field, value, _ = kind.mine
    form = opened(admin_client, kind.page(row)) | {field: given(field, value)}
    form = form | {"seen": [stamp]} if stamp is not None else form
    if stamp is None:
        del form["seen"]
    page = told(send(admin_client, kind, row, form), kind)
    assert "This page is damaged" in page
    assert "What is stored:" in page
    row.refresh_from_db()
    assert kind.stored(row, field) != value
    assert send(admin_client, kind, row, stamped_form(page)).status_code == 302
    row.refresh_from_db()
    assert kind.stored(row, field) == value


def test_saving_what_was_opened_changes_nothing(kind: Kind, admin_client: Client) -> None:
    row = kind.make()
    before = vars(type(row).objects.get(pk=row.pk))
    form = opened(admin_client, kind.page(row))
    assert send(admin_client, kind, row, form).status_code == 302
    after = vars(type(row).objects.get(pk=row.pk))
    touched = {"_state", "updated_at"}
    assert {k: v for k, v in before.items() if k not in touched} == {
        k: v for k, v in after.items() if k not in touched
    }
    changes = ("label.update", "webhook.change", "user.change", "group.change", "chat.update")
    told_of = AuditEvent.objects.filter(action__in=[*changes, "setting.change", "profile.update"])
    assert not told_of.exclude(action="label.update").exists()


def test_what_was_removed_meanwhile_is_not_made_again(admin_client: Client) -> None:
    kind = KINDS["label"]
    label = kind.make()
    form = opened(admin_client, kind.page(label))
    Label.objects.all().delete()
    assert send(admin_client, kind, label, form).status_code == 302
    assert not Label.objects.exists()


def test_every_form_that_changes_something_has_a_stamp(world: World, admin_client: Client) -> None:
    furnish(world)
    found = rows()
    stamped: set[str] = set()
    bare: set[str] = set()
    for model in admin.site._registry:
        label = model._meta.label_lower
        page = admin_client.get(of_admin(label)(type("Row", (), {"pk": found[label]}))).content
        shown = page.decode()
        if 'name="_save"' in shown or ">Save<" in shown:
            (stamped if 'name="seen"' in shown else bare).add(label)
    assert bare == set()
    assert {"sessions_app.label", "memories_app.memory", "auth.user"} < stamped


@pytest.mark.django_db(transaction=True)
def test_of_two_who_save_at_the_same_moment_one_is_asked() -> None:
    """Both have looked at the form and wait for the row, which is locked until then."""
    kind = KINDS["label"]
    row = kind.make()
    clients = [Client(), Client()]
    for number, client in enumerate(clients):
        client.force_login(User.objects.create_superuser(f"boss {number}"))
    field, value, _ = kind.mine
    forms = [
        opened(client, kind.page(row)) | {field: f"{value} {number}"}
        for number, client in enumerate(clients)
    ]

    def save(number: int) -> int:
        return int(send(clients[number], kind, row, forms[number]).status_code)

    with transaction.atomic():
        type(row).objects.select_for_update().get(pk=row.pk)
        saves = begin_all_blocked(partial(save, 0), partial(save, 1))
    codes = [each.result() for each in saves]
    assert sorted(codes) == [200, 302]
    saved = codes.index(302)
    row.refresh_from_db()
    assert kind.stored(row, field) == f"{value} {saved}"


@pytest.mark.django_db(transaction=True)
def test_what_is_written_at_the_moment_of_saving_stays(admin_client: Client) -> None:
    """The page has read the row already, and waits for it."""
    kind = KINDS["chat"]
    chat = kind.make()
    form = opened(admin_client, kind.page(chat)) | {"memory_enabled": "false"}
    with transaction.atomic():
        Chat.objects.select_for_update().get()
        sending = begin_blocked(lambda: send(admin_client, kind, chat, form))
        Chat.objects.update(client_name="Dana", language="he")
    sending.result()
    chat.refresh_from_db()
    assert (chat.memory_enabled, chat.client_name, chat.language) == (False, "Dana", "he")
