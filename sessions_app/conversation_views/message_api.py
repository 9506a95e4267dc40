"""Messages: those of a session, as seed 003 names what is done with them, and the search of all."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from django.db.models import Q, Subquery
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit import serializers as kit
from memoryproject.foundation.rest_kit.authentication import Caller
from memoryproject.foundation.rest_kit.errors import conflict, invalid, not_found, unavailable
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.operations import (
    CHANGED_MEANWHILE,
    conflicting,
    described,
    versioned,
)
from memoryproject.foundation.rest_kit.views import ApiView, ListView, etag_of_document, etagged
from memoryproject.foundation.rest_kit.where import Condition, where
from sessions_app.conversation_views.session_api import memory_disabled
from sessions_app.conversations import message_store
from sessions_app.embedding.facade import embedder
from sessions_app.extraction.dependencies import enqueue_learning, is_learning_enabled
from sessions_app.forgetting.presentation import FORGETTING, forget_once, forgets
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.facade import MemoryDisabledError, exchange_record, messages_learn
from sessions_app.models import Chat, Message, SummarizationMetadata
from sessions_app.models.messages import LEARN, Role
from sessions_app.presentation import access
from sessions_app.presentation.message_forms import stored_form
from sessions_app.presentation.serializers import (
    OF_ITS_FORM,
    MessageSerializer,
    MessagesQuery,
    NewExchangeSerializer,
    NewMessagesSerializer,
    SessionSerializer,
    StoredExchangeSerializer,
    StoredMessagesSerializer,
    WhatsAppChat,
)
from sessions_app.recall.facade import BOTH, NEAREST_SIMILARITY, WAYS, MessageHit, messages_found

# What a list of messages reads of each.
COLUMNS = tuple(sorted(set(map(str, MessageSerializer().fields)) - set(OF_ITS_FORM)))


class MessagesView(ListView):
    scopes = {"GET": "read", "POST": "write", "DELETE": "forget"}
    answers = {
        "POST": [conflicting("The session is archived.", "The session is archived: read-only.")],
        "DELETE": [CHANGED_MEANWHILE],
    }
    # The first match counts: a narrower error is listed before a wider one.
    raises = {
        message_store.ConversationNotFoundError: not_found,
        message_store.SessionArchivedError: conflict,
        message_store.DataValidationError: invalid,
        message_store.GenericMemoryError: unavailable,
        **FORGETTING,
        MemoryDisabledError: memory_disabled,
    }
    queryset = Message.objects.values_list(*COLUMNS, named=True)
    repeatable = frozenset({"role"})
    query_serializer_class = MessagesQuery
    filterset_class = access.MessageFilters
    where_fields = access.MESSAGE_FIELDS
    sortable = ("order_num",)
    serializer_class = MessageSerializer
    ordering = ("-order_num",)
    default_limit = message_store.MAX_MESSAGES

    @described(operation_id="sessions_messages_list")
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return the newest messages; `next` leads to older messages.

        With `ordering=order_num` the first ones instead; with `ordering` pages stand in its order.

        A summary has its own order_num and stands after the messages that it sums up. Of the
        server's own summaries there is only the newest, which tells what the others do. `before`
        is exclusive.
        """
        made = SummarizationMetadata.objects.filter(session=session_id).order_by("-number")
        rows = self.within_reach().filter(session=session_id)
        rows = rows.exclude(summarization__number__lt=Subquery(made.values("number")[:1]))
        if "before" in self.query:
            rows = rows.filter(timestamp__lt=self.query["before"])
        page = self.page_of(rows)
        if "ordering" not in request.query_params:
            page.data["results"] = page.data["results"][::-1]
        if self.caller.is_staff or not page.data["results"]:
            # A message is enough to know that the session is within reach.
            session = access.session_within(self.caller, session_id)
            self.record_read(object_type="session", object_id=session.pk, chat_id=session.chat_id)
        return page

    @described(
        operation_id="sessions_messages_add",
        request=NewMessagesSerializer,
        responses={201: StoredMessagesSerializer},
    )
    @idempotent(atomic=True)
    def post(self, request: Request, session_id: UUID) -> Response:
        """Store all of the messages or none, in the order given; at most 1,000.

        With `learn` facts are learned from what people say in them.
        """
        body = self.body(NewMessagesSerializer)
        now = timezone.now()
        new = [_new_message(each, now, request) for each in body["messages"]]
        stored = messages_store(self.caller, session_id, new, now)
        learning = messages_learn(
            rows=stored, **turn_fields(self.caller, stored, learn=body["learn"], now=now)
        )
        return Response({"messages": shown(stored), "learning": learning}, status=201)

    @forgets(operation_id="sessions_messages_clear")
    def delete(self, request: Request, session_id: UUID) -> Response:
        """Delete the messages; the session stays, empty, and continues its numbering.

        `If-Match` takes the ETag of the session: else 412.
        """
        return forget_once(
            self,
            "messages",
            lambda: access.session_within(self.caller, session_id),
            lambda session: etag_of_document(SessionSerializer(session).data),
        )


def messages_store(
    caller: Caller, session_id: UUID, new: Sequence[message_store.NewMessage], now: datetime
) -> list[Message]:
    """Store messages of a program. Raises the errors of add_messages, and MemoryDisabledError."""
    rules = build_intake_rules()

    def check(chat: Chat) -> None:
        if not rules.remember(chat):
            raise MemoryDisabledError

    return rules.chat_memory.add_messages(
        conversation_id=session_id, messages=new, now=now, chat_ids=caller.chat_ids, check=check
    )


def turn_fields(
    caller: Caller, stored: Sequence[Message], *, learn: bool, now: datetime
) -> dict[str, Any]:
    """Return what the turns of stored messages need: see inbound/exchanges.py."""
    chat = stored[0].session.chat
    return {
        "chat": chat,
        "role": build_intake_rules().chat_memory.role_in(chat),
        "context": access.speaker_of(caller).as_context(),
        "learn": enqueue_learning if learn and is_learning_enabled() else None,
        "now": now,
    }


def shown(stored: Sequence[Message]) -> Any:
    """Return stored messages as the API shows them."""
    # What programs store is text.
    own = {"kind": "text", "media": {}}
    values = [SimpleNamespace(**{**own, **vars(each)}) for each in stored]
    return MessageSerializer(values, many=True).data


class ExchangesView(ApiView):
    scopes = {"POST": "write"}
    answers = {"POST": MessagesView.answers["POST"]}
    raises = MessagesView.raises

    @described(
        operation_id="sessions_exchanges_add",
        request=NewExchangeSerializer,
        responses={201: StoredExchangeSerializer},
    )
    @idempotent(atomic=True)
    def post(self, request: Request, session_id: UUID) -> Response:
        """Store both at the end of the session; with `learn` learn from what the person said.

        Both are stored or neither. Staff see them as a question and its answer.
        """
        body = self.body(NewExchangeSerializer)
        now = timezone.now()
        at = {"timestamp": body.get("timestamp", now)}
        new = [
            _new_message({**at, "role": role, "content": body[name]}, now, request)
            for role, name in ((Role.USER, "query"), (Role.ASSISTANT, "reply"))
        ]
        question, reply = stored = messages_store(self.caller, session_id, new, now)
        turn, learning = exchange_record(
            question=question,
            reply=reply,
            replay={"model": body.get("model", "")},
            **turn_fields(self.caller, stored, learn=body["learn"], now=now),
        )
        document = {"messages": shown(stored), "learning": learning, "turn_id": turn.turn_id}
        return Response(document, status=201)


class OneMessageView(ApiView):
    serializer_class = MessageSerializer
    scopes = {"GET": "read", "DELETE": "forget"}
    answers = {"DELETE": [CHANGED_MEANWHILE]}
    raises = FORGETTING

    def message(self, session_id: UUID, message_id: UUID) -> Message:
        """Return the message. Raises NotFound also for one out of reach."""
        rows = Message.objects.filter(self.caller.reach(), session=session_id).defer("terms")
        return self.one_of(
            rows.filter(pk=message_id), f"message {message_id} in session {session_id}"
        )

    @described(operation_id="sessions_messages_get", **versioned(MessageSerializer))
    def get(self, request: Request, session_id: UUID, message_id: UUID) -> Response:
        """Return the message as it is stored now."""
        message = self.message(session_id, message_id)
        self.record_read(object_type="message", object_id=message.pk, chat_id=message.chat_id)
        return etagged(request, MessageSerializer(message).data)

    @forgets(operation_id="sessions_messages_forget")
    def delete(self, request: Request, session_id: UUID, message_id: UUID) -> Response:
        """Forget the message everywhere it was derived, with a receipt. Once more: 404.

        What was learned from this message alone goes with it. With `If-Match` only the version
        that you read: else 412.
        """
        return forget_once(self, "message", lambda: self.message(session_id, message_id))


def _new_message(each: dict[str, Any], now: Any, request: Request) -> message_store.NewMessage:
    new = message_store.NewMessage(**{"timestamp": now, **stored_form(each)})
    # By default promises are remembered, which need no model.
    body = request.data
    is_refused = isinstance(body, dict) and body.get("learn") is False
    if new.role == Role.ASSISTANT and is_refused:
        return replace(new, metadata={**new.metadata, LEARN: False})
    return new


MAX_QUERY_LENGTH = 8_192
DEFAULT_LIMIT, MAX_LIMIT = 20, 100


class SearchSerializer(kit.Strict):
    query = kit.Text(max_length=MAX_QUERY_LENGTH)
    by = kit.Choice(WAYS, default=BOTH)
    whatsapp_chat = WhatsAppChat(required=False)
    session_id = serializers.UUIDField(required=False)
    role = kit.Choice(Role.choices, required=False)
    since = kit.Moment(required=False)
    until = kit.Moment(required=False)
    where = Condition()
    min_similarity = kit.Number(default=NEAREST_SIMILARITY, min_value=0, max_value=1)
    limit = kit.Whole(default=DEFAULT_LIMIT, min_value=1, max_value=MAX_LIMIT)
    offset = kit.Whole(default=0, min_value=0)


class FoundMessageSerializer(MessageSerializer):
    whatsapp_chat = serializers.CharField()
    score = serializers.FloatField()
    similarity = serializers.FloatField(allow_null=True)

    def to_representation(self, instance: tuple[Message, MessageHit]) -> dict[str, Any]:
        message, hit = instance
        similarity = None if hit.similarity is None else round(hit.similarity, 4)
        own = {"whatsapp_chat": message.chat.whatsapp_chat, "score": hit.score}
        return {**super().to_representation(message), **own, "similarity": similarity}


class FoundMessagesSerializer(serializers.Serializer[Any]):
    results = FoundMessageSerializer(many=True)
    next_offset = serializers.IntegerField(allow_null=True)
    degraded = serializers.BooleanField()


class MessageSearchView(ApiView):
    scopes = {"POST": "read"}
    staff_rights = {"POST": ["sessions_app.view_chat", "sessions_app.view_message"]}
    kinds = {"POST": "read"}

    @described(
        operation_id="messages_search", request=SearchSerializer, responses=FoundMessagesSerializer
    )
    def post(self, request: Request) -> Response:
        """Return what people and the assistant said that fits, the best first.

        A bound token searches its chats. Commands and system texts are left out, as in a recall.
        """
        body = self.body(SearchSerializer)
        access.require_longterm()
        hits, degraded = messages_found(
            query=body["query"],
            within=self._within(body),
            embedder=embedder(),
            by=body["by"],
            min_similarity=body["min_similarity"],
        )
        end = body["offset"] + body["limit"]
        page = hits[body["offset"] : end]
        rows = Message.objects.select_related("chat").defer("terms")
        found = rows.in_bulk([hit.id for hit in page])
        for chat_id in {message.chat_id for message in found.values()}:
            self.record_read(object_type="chat", object_id=chat_id, chat_id=chat_id)
        document = {
            "results": [(found[hit.id], hit) for hit in page if hit.id in found],
            "next_offset": end if end < len(hits) else None,
            "degraded": degraded,
        }
        return Response(FoundMessagesSerializer(document).data)

    def _within(self, body: dict[str, Any]) -> Q:
        """Return the messages that are searched. Raises NotFound for what is out of reach."""
        found = self.caller.reach() & where(body["where"], access.MESSAGE_FIELDS)
        if "whatsapp_chat" in body:
            chat = access.chat_in_reach(self.caller, body["whatsapp_chat"])
            found &= Q(chat_id=chat and chat.pk)
        if "session_id" in body:
            found &= Q(session_id=access.session_within(self.caller, body["session_id"]).pk)
        named = {"role": "role", "since": "timestamp__gte", "until": "timestamp__lt"}
        given = {lookup: body[name] for name, lookup in named.items() if name in body}
        return found & Q(**given)
