"""REST views of chats: read, changed as staff change them on their pages, erased."""

from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import User
from django.contrib.postgres.expressions import ArraySubquery
from django.db import transaction
from django.db.models import OuterRef, Prefetch
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.rest_kit import operations, serializers as kit, views
from memoryproject.foundation.rest_kit.authentication import require_reading
from memoryproject.foundation.rest_kit.errors import refuse
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.text.uuids import iso_utc
from sessions_app.conversations.phrases import languages
from sessions_app.forgetting.presentation import FORGETTING, forget_once, forgets
from sessions_app.inbox.labels import chats_assign, chats_label, chats_unlabel
from sessions_app.inbox.move_markers import ReviewError, chats_record
from sessions_app.models import Chat, ChatAddress, ChatLabel, Label
from sessions_app.presentation import access
from sessions_app.turns.dependencies import max_answer_age
from sessions_app.turns.facade import answer_soon, chat_locked, chat_pause, chat_resume


class ChatSerializer(serializers.Serializer[Any]):
    whatsapp_chat = serializers.CharField()
    object_id = serializers.UUIDField(source="id")
    addresses = serializers.SerializerMethodField()
    is_group = serializers.BooleanField()
    client_name = serializers.CharField()
    client_phone = serializers.CharField()
    language = serializers.CharField()
    fixed_language = serializers.CharField()
    memory_enabled = serializers.BooleanField(allow_null=True)
    created_at = kit.Moment()
    name = serializers.CharField(source="staff_name")
    labels = serializers.SerializerMethodField()
    assignee = serializers.CharField(
        source="assignment.assignee.username", default=None, allow_null=True
    )
    paused = serializers.SerializerMethodField()
    paused_until = serializers.SerializerMethodField()

    def get_labels(self, chat: Chat) -> list[str]:
        """Return the names, with which lists annotate their chats."""
        names = getattr(chat, "label_names", None)
        if names is None:
            names = chat.chat_labels.values_list("label__name", flat=True)
        return sorted(names)

    def get_paused(self, chat: Chat) -> bool:
        pause = getattr(chat, "pause", None)
        return pause is not None and pause.holds(timezone.now())

    @extend_schema_field(kit.Moment(allow_null=True))
    def get_paused_until(self, chat: Chat) -> str | None:
        until = chat.pause.until if self.get_paused(chat) else None
        return iso_utc(until) if until else None

    def get_addresses(self, chat: Chat) -> list[str]:
        """Return the addresses that the view's queryset prefetched with the chats."""
        return sorted({link.address for link in chat.addresses.all() if link.left_at is None})


class ChangeChatSerializer(kit.Strict):
    name = kit.Text(source="staff_name", allow_blank=True, max_length=255)
    language = kit.Choice(sorted(languages()), source="fixed_language", allow_blank=True)
    memory_enabled = kit.Truth(allow_null=True)
    labels = kit.Items(child=kit.Text(max_length=40, trim_whitespace=True), max_length=50)
    assignee = kit.Text(allow_null=True, max_length=150)
    paused = kit.Truth()
    paused_until = kit.StoredMoment(allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        until = attrs.get("paused_until")
        if until is not None and not attrs.get("paused"):
            raise serializers.ValidationError({"paused_until": "Give it with paused: true."})
        if until is not None and until <= timezone.now():
            raise serializers.ValidationError({"paused_until": "It is past."}, code="past")
        return attrs


def chat_change(chat: Chat, changes: dict[str, Any], *, actor: Actor, by: int | None) -> None:
    """Make the changes of a locked chat, each with its audit event as on the pages of staff.

    ``changes``: the checked data of ChangeChatSerializer. ``by``: the staff member's id, if it is
    one. Raises ReviewError for an unknown assignee.
    """
    changed = {
        name: changes[name]
        for name in ("staff_name", "fixed_language", "memory_enabled")
        if name in changes and changes[name] != getattr(chat, name)
    }
    if changed:
        for name, value in changed.items():
            setattr(chat, name, value)
        chat.language = chat.fixed_language or chat.language
        chat.save(update_fields=[*changed, "language", "updated_at"])
        chats_record("chat.update", [chat.pk], actor, {"fields": sorted(changed)})
    if "labels" in changes:
        _labels_set(chat, changes["labels"], actor)
    if "assignee" in changes:
        login = changes["assignee"]
        assignee = User.objects.filter(username=login).first()
        if login is not None and assignee is None:
            raise ReviewError(f"There is no staff member {login}.")
        chats_assign(chat_ids=[chat.pk], assignee=assignee if login else None, actor=actor)
    now = timezone.now()
    if changes.get("paused"):
        until = changes.get("paused_until")
        chat_pause(chat_id=chat.pk, until=until, by=by, actor=actor, now=now)
    elif "paused" in changes:
        max_age = max_answer_age()
        chat_resume(chat_id=chat.pk, actor=actor, now=now, enqueue=answer_soon, max_age=max_age)


def _labels_set(chat: Chat, names: Collection[str], actor: Actor) -> None:
    had = set(Label.objects.filter(chat_labels__chat=chat))
    wanted = set()
    for name in names:
        label, is_new = Label.objects.get_or_create(name__iexact=name, defaults={"name": name})
        if is_new:
            audit_record("label.create", actor, "label", label.pk)
        wanted.add(label)
    for label in wanted - had:
        chats_label(chat_ids=[chat.pk], label=label, actor=actor)
    for label in had - wanted:
        chats_unlabel(chat_ids=[chat.pk], label=label, actor=actor)


# The views.


NAMED = operations.path_parameter(
    "whatsapp_chat", "Any of the chat's addresses.", access.WHATSAPP_CHAT_SCHEMA
)


LABELS = ArraySubquery(ChatLabel.objects.filter(chat=OuterRef("pk")).values("label__name"))


class ChatsView(views.ListView):
    scopes = {"GET": "read"}
    staff_rights = {"GET": ["sessions_app.view_chat"]}
    queryset = (
        Chat.objects.select_related("pause", "assignment__assignee")
        .prefetch_related(
            Prefetch("addresses", queryset=ChatAddress.objects.filter(left_at__isnull=True))
        )
        .annotate(label_names=LABELS)
    )
    serializer_class = ChatSerializer
    filterset_class = access.ChatFilters
    where_fields = access.CHAT_FIELDS
    sortable = ("created_at",)
    reach_field = "pk"
    ordering = ("-created_at", "-id")

    @operations.described(operation_id="chats_list")
    def get(self, request: Request) -> Response:
        """List people and groups, with the addresses by which they are known."""
        return self.page_of(self.within_reach())


# Those of the pages of staff on which the fields are.
CHANGE_RIGHTS = [
    "sessions_app.change_chat",
    "sessions_app.review_chat",
    "sessions_app.takeover_chat",
]


class ChatView(views.ApiView):
    serializer_class = ChatSerializer
    scopes = {"GET": "read", "PATCH": "write", "DELETE": "forget"}
    staff_rights = {"GET": ["sessions_app.view_chat"], "PATCH": CHANGE_RIGHTS}
    answers = {"PATCH": [operations.CHANGED_MEANWHILE], "DELETE": [operations.CHANGED_MEANWHILE]}
    raises = {**FORGETTING, ReviewError: lambda error: refuse(str(error), attr="assignee")}

    @operations.described(operation_id="chats_get", **operations.versioned(ChatSerializer, NAMED))
    def get(self, request: Request, whatsapp_chat: str) -> Response:
        """Return the chat that has this address now; any of its addresses will do."""
        chat = access.chat_within(self.caller, whatsapp_chat)
        self.record_read(object_type="chat", object_id=chat.pk)
        return views.etagged(request, ChatSerializer(chat).data)

    @operations.described(
        operation_id="chats_change",
        parameters=[NAMED, operations.IF_MATCH, operations.etag(200)],
        request=ChangeChatSerializer,
        responses=ChatSerializer,
    )
    @idempotent(atomic=True)
    def patch(self, request: Request, whatsapp_chat: str) -> Response:
        """Change what is given, all of it or nothing; labels that are new are made."""
        changes = self.body(ChangeChatSerializer, partial=True)
        chat = access.chat_within(self.caller, whatsapp_chat)
        require_reading(self.caller)
        by = request.user.pk if self.caller.is_staff else None
        with transaction.atomic():
            chat = chat_locked(chat.pk)
            views.require_match(request, views.etag_of_document(ChatSerializer(chat).data))
            chat_change(chat, changes, actor=self.caller.actor, by=by)
        document = ChatSerializer(access.chat_within(self.caller, whatsapp_chat)).data
        return Response(document, headers={"ETag": views.etag_of_document(document)})

    @forgets(NAMED, operation_id="chats_erase")
    def delete(self, request: Request, whatsapp_chat: str) -> Response:
        """Erase the conversations, memories and documents of the chat.

        What other chats learned of them is erased, too. It can't be undone; export first what has
        to be kept. With `If-Match` only the version that you read: else 412.
        """
        return forget_once(self, "chat", lambda: access.chat_within(self.caller, whatsapp_chat))
