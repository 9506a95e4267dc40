"""Run tools: convert arguments to calls of the API, and responses to results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpResponse
from rest_framework.response import Response

from memories_app.memory_documents.api.memory_document_api import DocumentView
from memoryproject.foundation.rest_kit.authentication import Caller, caller_with
from memoryproject.foundation.rest_kit.errors import refuse
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.cards.api import CardView
from sessions_app.conversation_views.api.session_api import SessionsView
from sessions_app.mcp.arguments import SESSIONS_ON_A_PAGE, YAML
from sessions_app.memories.api.memory_api import MemoriesView, MemoryView
from sessions_app.memories.api.recall_api import RecallView
from sessions_app.presentation.access import chat_or_own
from sessions_app.turns.api.turn_serializers import ContextView

# Call the REST API's views within this process, with one token.

NON_FIELD = "non_field_errors"
FAILED = "Something went wrong on the server, whose log tells more. Try again later."


class Refused(Exception):
    """The API refused the call. Each error has a detail and an attr.

    The text states what was wrong and where.
    """

    def __init__(self, errors: Sequence[Mapping[str, Any]]) -> None:
        super().__init__("\n".join(map(_line, errors)))


def _line(error: Mapping[str, Any]) -> str:
    attr, detail = error["attr"], str(error["detail"])
    return detail if attr in (None, NON_FIELD) else f"{attr}: {detail}"


@dataclass(frozen=True)
class Operation:
    """A method of a view."""

    view: type[ApiView]
    method: str

    @property
    def scope(self) -> str:
        return self.view.scopes[self.method]

    def is_open_to(self, caller: Caller) -> bool:
        """Return whether the view grants access to the caller at all."""
        return self.scope in caller.scopes and (self.view.bound_tokens or not caller.is_bound)


@dataclass(frozen=True)
class Answer:
    """``document``: the body; ``response``: the whole response."""

    document: dict[str, Any]
    response: HttpResponse


@dataclass(frozen=True)
class Rest:
    """``secret``: the token. Each call looks it up, because it may be revoked meanwhile."""

    secret: str

    def call(
        self,
        operation: Operation,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        **path: Any,
    ) -> Answer:
        """Call an operation. ``path``: the parameters in the address.

        Raises Refused for every response without a 2xx status, and errors that the view doesn't
        handle, such as a full disk.
        """
        request = _InProcessRequest(self._environ(operation, query or {}, body))
        response = operation.view.as_view()(request, **path)
        if isinstance(response, Response):
            response.render()
        document = json.loads(response.content)
        if response.status_code == 500:
            raise Refused([{"attr": None, "detail": FAILED}])
        if response.status_code >= 400:
            raise Refused(document["errors"])
        return Answer(document, response)

    def _environ(self, operation: Operation, query: Mapping[str, Any], body: Any) -> dict[str, Any]:
        raw = b"" if body is None else json.dumps(body).encode()
        return {
            "REQUEST_METHOD": operation.method,
            # Only for the log.
            "PATH_INFO": f"/mcp/{operation.view.__name__}",
            "QUERY_STRING": urlencode(query),
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(raw)),
            "HTTP_AUTHORIZATION": f"Token {self.secret}",
            "wsgi.input": BytesIO(raw),
            "wsgi.url_scheme": "http",
        }


class _InProcessRequest(WSGIRequest):
    """A request without a host: only the cursors of addresses in answers are read."""

    def get_host(self) -> str:
        return "localhost"


REMEMBER = Operation(MemoriesView, "POST")
RECALL = Operation(RecallView, "POST")
FORGET = Operation(MemoryView, "DELETE")
CONTEXT = Operation(ContextView, "POST")
SESSIONS = Operation(SessionsView, "GET")
CARD = Operation(CardView, "GET")
SAVE = Operation(DocumentView, "PUT")
LOAD = Operation(DocumentView, "GET")

Arguments = dict[str, Any]


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool. ``document``: the API's body.

    ``text``: the body in a form other than JSON; ``note``: information from the status or the
    headers.
    """

    document: dict[str, Any]
    text: str | None = None
    note: str = ""


def remember(rest: Rest, given: Arguments) -> ToolResult:
    answer = rest.call(REMEMBER, body=given)
    known = answer.response.status_code == 200
    note = "It was known already, and counts as told again." if known else "It is remembered."
    if answer.document["superseded"]:
        note += f" It takes the place of {', '.join(answer.document['superseded'])}."
    return ToolResult(answer.document, note=note)


def recall(rest: Rest, given: Arguments) -> ToolResult:
    return ToolResult(rest.call(RECALL, body=given).document)


def forget(rest: Rest, given: Arguments) -> ToolResult:
    return ToolResult(rest.call(FORGET, memory_id=given["memory_id"]).document)


def get_context(rest: Rest, given: Arguments) -> ToolResult:
    question = {name: given[name] for name in ("query", "max_tokens") if name in given}
    session_id = given.get("session_id") or _active_session(rest, _chat(rest, given))
    return ToolResult(rest.call(CONTEXT, body=question, session_id=session_id).document)


def _chat(rest: Rest, given: Arguments) -> str:
    """Return the named chat, or that of a token that is bound to one."""
    if "whatsapp_chat" in given:
        return str(given["whatsapp_chat"])
    caller = caller_with(rest.secret)
    if not caller.is_bound:
        raise refuse("Give either session_id or whatsapp_chat.")
    return chat_or_own(caller, None)


def _active_session(rest: Rest, whatsapp_chat: str) -> str:
    query = {"whatsapp_chat": whatsapp_chat, "status": "active", "limit": 1}
    found = rest.call(SESSIONS, query=query).document["results"]
    if not found:
        detail = f"{whatsapp_chat} has no active session. list_sessions tells which there are."
        raise refuse(detail, code="not_found", attr="whatsapp_chat")
    return str(found[0]["session_id"])


def list_sessions(rest: Rest, given: Arguments) -> ToolResult:
    page = rest.call(SESSIONS, query={"limit": SESSIONS_ON_A_PAGE, **given}).document
    cursors = {way: page[f"{way}_cursor"] for way in ("next", "previous")}
    return ToolResult({"results": page["results"], **cursors})


def get_card(rest: Rest, given: Arguments) -> ToolResult:
    answer = rest.call(CARD, session_id=given["session_id"])
    card: Any = answer.response
    return ToolResult(answer.document, text=card.data.yaml if given.get("format") == YAML else None)


def save_document(rest: Rest, given: Arguments) -> ToolResult:
    answer = rest.call(
        SAVE,
        category=given["category"],
        identifier=given["identifier"],
        query={"session_id": given["session_id"]} if "session_id" in given else None,
        body=given["content"],
    )
    done = "Created" if answer.response.status_code == 201 else "Saved"
    return ToolResult(answer.document, note=f"{done}: {_place(answer)}.")


def load_document(rest: Rest, given: Arguments) -> ToolResult:
    answer = rest.call(
        LOAD,
        category=given["category"],
        identifier=given["identifier"],
        query={"archived": "true" if given.get("archived") else "false"},
    )
    return ToolResult(
        answer.document, text=answer.response.content.decode(), note=f"{_place(answer)}."
    )


def _place(answer: Answer) -> str:
    """Return the document's name: in context the date is part of it."""
    address = urlsplit(answer.response.headers["Content-Location"])
    category, name = address.path.strip("/").split("/")[-2:]
    return f"{category}/{unquote(name)}{' in the archive' if address.query else ''}"
