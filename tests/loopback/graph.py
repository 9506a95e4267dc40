"""A stand-in for Meta's Graph API that checks what the Cloud API checks, and can fail."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

from memoryproject.foundation.integrations.loopback import providers
from memoryproject.foundation.integrations.loopback.httpd import Answer, Request
from memoryproject.foundation.integrations.loopback.providers import graph_error
from tests.loopback.httpd import FaultyServer, Form, posted_form

_PATH = re.compile(r"(?:/v[0-9]+\.[0-9]+)?/([0-9]+)/messages")
_UPLOAD_PATH = re.compile(r"(?:/v[0-9]+\.[0-9]+)?/([0-9]+)/media")


class GraphServer(FaultyServer, providers.GraphServer):
    """The Cloud API of one phone number, or of several.

    ``templates`` holds the number of variables of each approved template, by name and language.
    ``others`` holds the tokens of further numbers.
    ``refuses_choices``: it takes no buttons and lists. ``template_list``: what the business account
    lists, two on a page; ``template_queries`` holds the queries.
    """

    def __init__(self, **options: Any) -> None:
        # The one that Meta gives to each new account.
        self.templates: dict[tuple[str, str], int] = {("hello_world", "en_US"): 0}
        self.others: dict[str, str] = {}
        self.refuses_choices = False
        self.business_account_id = "200000000000002"
        self.template_list: list[dict[str, Any]] = []
        self.template_queries: list[str] = []
        super().__init__(**options)

    @property
    def sent_by(self) -> list[tuple[str, str]]:
        """The number and the text of each text that was accepted or refused, in order."""
        found = [(_PATH.fullmatch(each.path), each.body or {}) for each in self.requests]
        return [
            (path.group(1), body["text"]["body"]) for path, body in found if path and "text" in body
        ]

    @property
    def reads(self) -> list[str]:
        """The ids of the messages that were marked as read."""
        bodies = (each.body or {} for each in self.requests)
        return [body["message_id"] for body in bodies if body.get("status") == "read"]

    def token_for(self, request: Request) -> str:
        path = _PATH.fullmatch(request.path) or _UPLOAD_PATH.fullmatch(request.path)
        return self.others.get(path.group(1) if path else "", self.access_token)

    def handle(self, request: Request) -> Answer:
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        if _UPLOAD_PATH.fullmatch(request.path):
            return self._upload(request)
        path, _, query = request.path.partition("?")
        if path.endswith(f"/{self.business_account_id}/message_templates"):
            return self._templates(query)
        if path.endswith(f"/{self.phone_number_id}"):
            return Answer(
                200,
                {
                    "id": self.phone_number_id,
                    "display_phone_number": self.display_phone_number,
                    "verified_name": "Loopback",
                    "quality_rating": "GREEN",
                },
            )
        return super().handle(request)

    def _refusal(self, request: Request) -> Answer | None:
        path = _PATH.fullmatch(request.path) or _UPLOAD_PATH.fullmatch(request.path)
        known = (self.phone_number_id, *self.others)
        if request.method == "POST" and (path is None or path.group(1) not in known):
            return graph_error(100, "Unsupported post request. Object does not exist")
        if request.headers.get("authorization") != f"Bearer {self.token_for(request)}":
            return graph_error(190, "Invalid OAuth access token", status=401)
        if request.method == "GET" or _UPLOAD_PATH.fullmatch(request.path):
            return None
        body = request.body
        if body is None or body.get("messaging_product") != "whatsapp":
            return graph_error(100, "(#100) The parameter messaging_product is required.")
        if body.get("status") == "read":
            if str(body.get("message_id", "")).startswith("wamid."):
                return None
            return graph_error(131009, "(#131009) Parameter value is not valid")
        if self.refuses_choices and body.get("type") == "interactive":
            return graph_error(131051, "(#131051) Unsupported message type")
        return message_refusal(body) or self._template_refusal(body) or self._unknown_file(body)

    def _templates(self, query: str) -> Answer:
        self.template_queries.append(query)
        start = int(dict(parse_qsl(query)).get("after", "0"))
        about: dict[str, Any] = {"data": self.template_list[start : start + 2]}
        end = str(start + 2)
        about["paging"] = {"cursors": {"before": str(start), "after": end}}
        if start + 2 < len(self.template_list):
            about["paging"]["next"] = f"{self.url}/next"
        return Answer(200, about)

    def _upload(self, request: Request) -> Answer:
        """Keep a file for the messages that name it."""
        form = posted_form(request)
        if form is None or form.content is None:
            return graph_error(100, "(#100) The parameter file is required.")
        if form.fields.get("messaging_product") != "whatsapp":
            return graph_error(100, "(#100) The parameter messaging_product is required.")
        if not fits_types(form):
            details = f"Param file has no supported type and size: '{form.content_type}'"
            return graph_error(100, "(#100) Invalid parameter", details=details)
        return Answer(200, {"id": self.add_file(form.content, form.content_type)})

    def _unknown_file(self, body: dict[str, Any]) -> Answer | None:
        """Return the reason to refuse a message whose file isn't here, or is of another kind."""
        if body["type"] not in FILE_TYPES:
            return None
        stored = self.files.get(str(body[body["type"]].get("id")))
        if stored is None:
            return graph_error(131009, "(#131009) Media ID does not exist")
        if stored.mime_type not in FILE_TYPES[body["type"]][1]:
            return graph_error(131053, "(#131053) Media upload error")
        return None

    def _template_refusal(self, body: dict[str, Any]) -> Answer | None:
        """Return the reason to refuse a template that isn't approved, or that is filled wrongly."""
        if body.get("type") != "template":
            return None
        about = body["template"]
        expected = self.templates.get((about["name"], about["language"]["code"]))
        if expected is None:
            details = f"template name ({about['name']}) does not exist in the translation"
            return graph_error(132001, "(#132001) Template name does not exist", details=details)
        found = len(template_values(about))
        if found != expected:
            details = f"number of localizable_params ({found}) does not match {expected}"
            return graph_error(132000, "(#132000) Number of parameters differs", details=details)
        return None


# The checks that the Cloud API makes of a message before it takes it.

_MAX_TEXT = 4096
_UNFIT = re.compile(r"[\n\t]| {5}")
_MEGABYTE = 1024 * 1024
_OFFICE = "application/vnd.openxmlformats-officedocument."
# Meta, "Supported media types": the types of each kind, and the largest size in bytes.
FILE_TYPES: dict[str, tuple[int, tuple[str, ...]]] = {
    "image": (5 * _MEGABYTE, ("image/jpeg", "image/png")),
    "video": (16 * _MEGABYTE, ("video/mp4", "video/3gpp")),
    "audio": (16 * _MEGABYTE, ("audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg")),
    "document": (
        100 * _MEGABYTE,
        (
            "text/plain",
            "application/pdf",
            "application/msword",
            "application/vnd.ms-excel",
            "application/vnd.ms-powerpoint",
            f"{_OFFICE}wordprocessingml.document",
            f"{_OFFICE}spreadsheetml.sheet",
            f"{_OFFICE}presentationml.presentation",
        ),
    ),
}
_MAX_CAPTION = 1024


def _is_quote(context: Any) -> bool:
    return isinstance(context, dict) and str(context.get("message_id", "")).startswith("wamid.")


def message_refusal(body: dict[str, Any]) -> Answer | None:
    """Return the Cloud API's reason to refuse the message; None if it would accept it."""
    if not (body.get("to") or body.get("recipient")):
        return graph_error(100, "(#100) The parameter to is required.")
    if "context" in body and not _is_quote(body["context"]):
        details = "The parameter context['message_id'] names no message."
        return graph_error(131009, "(#131009) Parameter value is not valid", details=details)
    if body.get("type") == "template":
        return _malformed_template(body.get("template"))
    if body.get("type") in FILE_TYPES:
        return _malformed_file(body["type"], body.get(body["type"]))
    if body.get("type") == "interactive":
        return _malformed_interactive(body.get("interactive"), in_group=body.get("recipient_type"))
    if body.get("type") != "text":
        return graph_error(131051, "(#131051) Unsupported message type")
    text = body.get("text")
    written = text.get("body") if isinstance(text, dict) else None
    if not isinstance(written, str) or not written:
        return graph_error(100, "(#100) The parameter text['body'] is required.")
    if len(written) > _MAX_TEXT:
        return graph_error(
            100, f"(#100) Param text['body'] must be at most {_MAX_TEXT} characters long."
        )
    return None


def _malformed_interactive(about: Any, in_group: Any) -> Answer | None:
    """Return the reason to refuse a message with buttons or a list."""
    kind = about.get("type") if isinstance(about, dict) else None
    if kind not in ("button", "list") or in_group == "group":
        return graph_error(131051, "(#131051) Unsupported message type")
    action, text = about["action"], about["body"]["text"]
    if kind == "button":
        choices = [button["reply"] for button in action["buttons"]]
        most, longest, longest_title = 3, 1024, 20
        is_fit = all(button["type"] == "reply" for button in action["buttons"])
    else:
        choices = [row for section in action["sections"] for row in section["rows"]]
        most, longest, longest_title = 10, _MAX_TEXT, 24
        is_fit = 0 < len(action["button"]) <= 20
        is_fit &= all(len(row.get("description", "")) <= 72 for row in choices)
    titles = [choice["title"] for choice in choices]
    is_fit &= 0 < len(titles) <= most and 0 < len(text) <= longest
    is_fit &= all(0 < len(title) <= longest_title for title in titles)
    is_fit &= len(set(titles)) == len(titles) == len({choice["id"] for choice in choices})
    is_fit &= all(0 < len(choice["id"]) <= 200 for choice in choices)
    return None if is_fit else graph_error(131009, "(#131009) Parameter value is not valid")


def fits_types(form: Form) -> bool:
    """Return whether a file's type and size are those that Meta takes."""
    return any(
        form.content_type in types and 0 < len(form.content or b"") <= most
        for most, types in FILE_TYPES.values()
    )


def _malformed_file(kind: str, about: Any) -> Answer | None:
    """Return the reason to refuse a message with a file, whatever file it is."""
    if not isinstance(about, dict) or not about.get("id"):
        return graph_error(100, f"(#100) The parameter {kind}['id'] is required.")
    allowed = {"id"} | ({"caption"} if kind != "audio" else set())
    allowed |= {"filename"} if kind == "document" else set()
    for name in about:
        if name not in allowed:
            return graph_error(100, f'(#100) Unexpected key "{name}" on param "{kind}".')
    if len(str(about.get("caption", ""))) > _MAX_CAPTION:
        return graph_error(
            100, f"(#100) Param {kind}['caption'] must be at most {_MAX_CAPTION} characters long."
        )
    return None


def _malformed_template(about: Any) -> Answer | None:
    """Return the reason to refuse a template that no account could send."""
    language = about.get("language") if isinstance(about, dict) else None
    if not isinstance(about, dict) or not about.get("name"):
        return graph_error(100, "(#100) The parameter template['name'] is required.")
    if not isinstance(language, dict) or not language.get("code"):
        return graph_error(100, "(#100) The parameter template['language'] is required.")
    for value in template_values(about):
        text = value.get("text") if isinstance(value, dict) else None
        if not text or _UNFIT.search(str(text)):
            return graph_error(132018, "(#132018) Param text cannot have new-line/tab characters")
    return None


def template_values(about: dict[str, Any]) -> list[Any]:
    """Return the values of the body's variables."""
    return [
        value
        for component in about.get("components", [])
        if component.get("type") == "body"
        for value in component.get("parameters", [])
    ]
