"""API of transcripts: read a session as text, and save a text as messages."""

import re
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.exceptions import APIException, ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.process.narrowing import instance
from memoryproject.foundation.rest_kit import fields
from memoryproject.foundation.rest_kit.bodies import MEGABYTE, Json, JsonParser, TextParser
from memoryproject.foundation.rest_kit.errors import Unavailable, conflict
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.operations import conflicting, described, header, location
from memoryproject.foundation.rest_kit.serializers import Strict, Text, Truth
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.conversations.chat_queries import chat_at
from sessions_app.presentation import access
from sessions_app.presentation.serializers import WhatsAppChat
from sessions_app.transcript_files.parse_transcript import (
    MAX_FILE_SIZE,
    BusyError,
    FaultError,
    Problem,
    RefusedError,
)
from sessions_app.transcript_files.transcript_folder import OneText, no_progress
from sessions_app.transcripts import export_transcripts
from sessions_app.transcripts.save import batches_save, build_save_dependencies
from sessions_app.transcripts.status import folder_validate

# Transcripts, their problems and what was saved of them as JSON.


MAX_OVERLAP = 10**9


class TranscriptTextSerializer(Strict):
    text = Text(allow_blank=True)
    whatsapp_chat = WhatsAppChat(
        required=False,
        allow_null=True,
        help_text=f"Default: {export_transcripts.DEFAULT_CHAT}. Made where new.",
    )
    append = Truth(default=False)
    overlap = serializers.IntegerField(
        required=False, allow_null=True, min_value=0, max_value=MAX_OVERLAP
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["append"] and attrs.get("overlap") is not None:
            raise serializers.ValidationError({"overlap": "Give overlap or append, not both."})
        return attrs


class TranscriptProblemSerializer(serializers.Serializer[Any]):
    line = serializers.IntegerField(allow_null=True)
    rule = serializers.IntegerField(allow_null=True)
    code = serializers.CharField()
    what = serializers.CharField()
    mend = serializers.CharField()


class TranscriptValidationSerializer(serializers.Serializer[Any]):
    valid = serializers.BooleanField()
    messages = serializers.IntegerField()
    problems = TranscriptProblemSerializer(many=True)
    further = serializers.IntegerField()
    notes = fields.texts()


class SavedTranscriptSerializer(serializers.Serializer[Any]):
    whatsapp_chat = serializers.CharField()
    session_id = serializers.UUIDField()
    messages = serializers.IntegerField()
    added = serializers.IntegerField()
    overlap = serializers.IntegerField()
    notes = fields.texts()


class TranscriptQuery(Strict):
    redact = serializers.BooleanField(default=False)


class LeftOutMessageSerializer(serializers.Serializer[Any]):
    session_id = serializers.UUIDField()
    order_num = serializers.IntegerField()
    message_id = serializers.UUIDField()
    role = serializers.CharField()
    reason = serializers.CharField()
    what = serializers.CharField()


class TranscriptSerializer(serializers.Serializer[Any]):
    text = serializers.CharField()
    redacted = serializers.BooleanField()
    messages = serializers.IntegerField()
    left_out = LeftOutMessageSerializer(many=True)


_OVERLAP = re.compile(r"--overlap ([0-9]+)")
# Errors that depend on the moment, not on the text.
OF_THE_MOMENT = {"answering", "changed_meanwhile"}


class TranscriptText(Json):
    media_type = "text/plain"
    format = "txt"


class SessionTranscriptView(ApiView):
    scopes = {"GET": "read"}
    staff_rights = {"GET": ["sessions_app.view_chatsession", "sessions_app.view_message"]}
    query_serializer_class = TranscriptQuery
    renderer_classes = [TranscriptText, Json]

    @described(
        operation_id="sessions_transcript",
        parameters=[
            header("Transcript-Left-Out", "How many messages are left out.", 200),
            header("Transcript-Redacted", "Whether personal data is left out.", 200),
        ],
        responses={
            (200, "text/plain"): OpenApiTypes.STR,
            (200, "application/json"): TranscriptSerializer,
        },
    )
    def get(self, request: Request, session_id: UUID) -> HttpResponse:
        """Return the session's messages and their answers in turn, as text.

        Messages that can't alternate are left out; `Transcript-Left-Out` reports how many. With
        `Accept: application/json` or `?format=json` the answer names them.
        """
        session = access.session_within(self.caller, session_id)
        text, exported = export_transcripts.conversation_text(
            conversation=export_transcripts.Conversation(session.chat, session),
            actor=self.caller.actor,
            redacted=self.query["redact"],
        )
        headers = {
            "Transcript-Left-Out": str(len(exported.left_out)),
            "Transcript-Redacted": str(exported.redacted).lower(),
        }
        if isinstance(request.accepted_renderer, TranscriptText):
            # Set it for an empty text too: Response would leave out the content type.
            kind = "text/plain; charset=utf-8"
            return HttpResponse(text.encode(), content_type=kind, headers=headers)
        shown = TranscriptSerializer({**vars(exported), "text": text}).data
        return Response(shown, headers=headers)


class TextView(ApiView):
    """Accept a transcript as plain text or in a JSON object."""

    parser_classes = [JsonParser, TextParser]
    # One more than the limit of the text, so that its own error reports the limit.
    max_body_bytes = MAX_FILE_SIZE + MEGABYTE
    bodies = {"text/plain": OpenApiTypes.STR, "application/json": TranscriptTextSerializer}

    def given(self) -> dict[str, Any]:
        """Return the fields of the body, which is plain text or a JSON object."""
        if not str(self.request.content_type).startswith("text/plain"):
            return self.body(TranscriptTextSerializer)
        # No parser reads an empty body.
        return {"text": self.request.data or "", "append": False}

    def overlap(self, given: dict[str, Any]) -> int | None:
        """Return the overlap that the caller decided on; None if it is to be found."""
        return 0 if given["append"] else given.get("overlap")

    def target(self, given: dict[str, Any]) -> export_transcripts.Target | None:
        """Return the chat that the body names, else the only one of a bound token.

        Raises NotFound for one out of reach.
        """
        name = given.get("whatsapp_chat") or access.own_chat(self.caller)
        if name:
            access.chat_in_reach(self.caller, name)
        return export_transcripts.Target(whatsapp_chat=name) if name else None


def refused(error: Exception) -> APIException:
    """Return an error that lists every problem with its line and rule."""
    refusal = instance(error, RefusedError)
    if all(problem.code in OF_THE_MOMENT for problem in refusal.problems):
        return conflict(Exception(" ".join(as_response(problem) for problem in refusal.problems)))
    errors = [ErrorDetail(as_response(problem), problem.code) for problem in refusal.problems]
    if refusal.further:
        errors.append(ErrorDetail(f"And {refusal.further} more.", "further"))
    return ValidationError({"text": errors})


def as_response(problem: Problem) -> str:
    """Return the problem as text: "Line 3, rule 4:", the fault and the correction."""
    line = None if problem.line is None else f"line {problem.line}"
    rule = None if problem.rule is None else f"rule {problem.rule}"
    place = ", ".join(part for part in (line, rule) if part)
    text = f"{problem.what} {mend(problem)}"
    return f"{place[0].upper()}{place[1:]}: {text}" if place else text


def not_backed_up(error: Exception) -> APIException:
    """Say what is stored. The error itself speaks of files, which the caller doesn't have."""
    return Unavailable(
        "The messages are stored, but the text could not be backed up. Send the same text again: "
        "nothing is stored twice."
    )


def mend(problem: Problem) -> str:
    """Return the correction in the terms of an HTTP client."""
    text = problem.mend.replace("--append", '"append": true')
    return _OVERLAP.sub(r'"overlap": \1', text)


class ValidateTranscriptView(TextView):
    scopes = {"POST": "read"}

    @described(
        operation_id="transcripts_validate",
        request=TextView.bodies,
        responses=TranscriptValidationSerializer,
    )
    def post(self, request: Request) -> Response:
        given = self.given()
        found = folder_validate(
            folder=OneText(given["text"]), target=self.target(given), overlap=self.overlap(given)
        )
        problems = [{**each.as_dict(), "mend": mend(each)} for each in found.problems]
        shown = {**found.as_dict(), "problems": problems}
        return Response(TranscriptValidationSerializer(shown).data)


class TranscriptsView(TextView):
    scopes = {"POST": "write"}
    answers = {
        "POST": [
            conflicting(
                "An answer is on its way there, or somebody else saves there.",
                "An answer is on its way in this chat. Try again when it is there.",
            )
        ]
    }
    kinds = {"POST": "bulk"}
    raises = {RefusedError: refused, BusyError: conflict, FaultError: not_backed_up}

    @described(
        operation_id="transcripts_save",
        request=TextView.bodies,
        parameters=[location(201)],
        responses={201: SavedTranscriptSerializer, 200: SavedTranscriptSerializer},
    )
    # A text that is stored already isn't stored again.
    @idempotent(atomic=False)
    def post(self, request: Request) -> Response:
        given = self.given()
        target = self.target(given)
        if target is None and self.caller.is_bound:
            # Of several chats: it says which ones.
            access.chat_or_own(self.caller, None)
        target = target or export_transcripts.Target()
        access.require_memory(chat_at(target.whatsapp_chat))
        saved = batches_save(
            folder=OneText(given["text"]),
            target=target,
            dependencies=build_save_dependencies(progress=no_progress),
            actor=self.caller.actor,
            overlap=self.overlap(given),
        )
        answer = SavedTranscriptSerializer(saved).data
        place = {"Location": reverse("api-session-transcript", args=[saved.session_id])}
        is_new = saved.added > 0
        return Response(answer, status=201 if is_new else 200, headers=place if is_new else None)
