"""A stand-in for Meta's Graph API: it accepts WhatsApp messages and reports their statuses.

It checks what the Cloud API checks and answers in the same formats: wamids, the Graph error
envelope, and signed status webhooks that return ``biz_opaque_callback_data``.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
import uuid
from typing import Any

from memoryproject.foundation.integrations.loopback.httpd import (
    Answer,
    Form,
    ProviderServer,
    Request,
    posted_form,
)
from memoryproject.foundation.integrations.loopback.webhooks import signed_headers

_PATH = re.compile(r"(?:/v[0-9]+\.[0-9]+)?/([0-9]+)/messages")
_UPLOAD_PATH = re.compile(r"(?:/v[0-9]+\.[0-9]+)?/([0-9]+)/media")
_FILE_PATH = re.compile(r"(?:/v[0-9]+\.[0-9]+)?/([0-9]+)")


class GraphServer(ProviderServer):
    """The Cloud API of one phone number. ``sent`` holds the request's body and the ``id``.

    ``templates`` holds the number of variables of each approved template, by name and language.
    """

    def __init__(
        self,
        *,
        access_token: str,
        phone_number_id: str = "100000000000001",
        display_phone_number: str = "15550100001",
        app_secret: str = "",
        webhook_url: str = "",
        statuses: tuple[str, ...] = ("sent", "delivered", "read"),
        status_delay: float = 0.0,
        port: int = 0,
    ) -> None:
        super().__init__(
            webhook_url=webhook_url, statuses=statuses, status_delay=status_delay, port=port
        )
        self.phone_number_id = phone_number_id
        self.display_phone_number = display_phone_number
        self.access_token = access_token
        self.app_secret = app_secret
        # The one that Meta gives to each new account.
        self.templates: dict[tuple[str, str], int] = {("hello_world", "en_US"): 0}

    def handle(self, request: Request) -> Answer:
        if request.method == "GET":
            return self._file(request)
        if _UPLOAD_PATH.fullmatch(request.path):
            return self._upload(request)
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        body = request.body or {}
        if body.get("status") == "read":
            return self._mark_read(body)
        refusal = message_refusal(body) or self._template_refusal(body) or self._unknown_file(body)
        return refusal if refusal is not None else self._accept(body)

    def _refusal(self, request: Request) -> Answer | None:
        path = _PATH.fullmatch(request.path)
        if path is None or path.group(1) != self.phone_number_id:
            return graph_error(100, "Unsupported post request. Object does not exist")
        if request.headers.get("authorization") != f"Bearer {self.access_token}":
            return graph_error(190, "Invalid OAuth access token", status=401)
        if request.body is None or request.body.get("messaging_product") != "whatsapp":
            return graph_error(100, "(#100) The parameter messaging_product is required.")
        return None

    def _upload(self, request: Request) -> Answer:
        """Keep a file for the messages that name it."""
        path = _UPLOAD_PATH.fullmatch(request.path)
        if path is None or path.group(1) != self.phone_number_id:
            return graph_error(100, "Unsupported post request. Object does not exist")
        if request.headers.get("authorization") != f"Bearer {self.access_token}":
            return graph_error(190, "Invalid OAuth access token", status=401)
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

    def _file(self, request: Request) -> Answer:
        """Return a file's address, the file itself, or the details of our number.

        All of them require the access token.
        """
        if request.headers.get("authorization") != f"Bearer {self.access_token}":
            return graph_error(190, "Invalid OAuth access token", status=401)
        file = self.file_answer(request.path)
        if file is not None:
            return file
        if request.path.partition("?")[0].endswith(f"/{self.phone_number_id}"):
            return Answer(
                200,
                {
                    "id": self.phone_number_id,
                    "display_phone_number": self.display_phone_number,
                    "verified_name": "Loopback",
                    "quality_rating": "GREEN",
                },
            )
        about = _FILE_PATH.fullmatch(request.path)
        stored = self.files.get(about.group(1)) if about else None
        if about is None or stored is None:
            return graph_error(100, "Unsupported get request. Object does not exist")
        return Answer(
            200,
            {
                "messaging_product": "whatsapp",
                "url": self.file_url(about.group(1)),
                "mime_type": stored.mime_type,
                "sha256": hashlib.sha256(stored.content).hexdigest(),
                "file_size": str(len(stored.content)),
                "id": about.group(1),
            },
        )

    def _mark_read(self, body: dict[str, Any]) -> Answer:
        message_id = str(body.get("message_id", ""))
        if not message_id.startswith("wamid."):
            return graph_error(131009, "(#131009) Parameter value is not valid")
        self.reads.append(message_id)
        return Answer(200, {"success": True})

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

    def _accept(self, body: dict[str, Any]) -> Answer:
        address = str(body.get("to") or body.get("recipient"))
        wamid = new_wamid(address)
        self.sent.append({**body, "id": wamid})
        for status in self.statuses:
            self.report(self.status_payload(wamid, status, body))
        contact = {"input": address, "wa_id" if body.get("to") else "user_id": address}
        return Answer(
            200,
            {
                "messaging_product": "whatsapp",
                "contacts": [contact],
                "messages": [{"id": wamid}],
            },
        )

    def webhook_headers(self, body: bytes) -> dict[str, str]:
        return signed_headers(self.app_secret, body)

    def status_payload(self, wamid: str, status: str, message: dict[str, Any]) -> dict[str, Any]:
        """Return the status webhook for a message (the body of its send request)."""
        reported: dict[str, Any] = {
            "id": wamid,
            "status": status,
            "timestamp": str(int(time.time())),
        }
        if message.get("to"):
            reported["recipient_id"] = message["to"]
        else:
            reported["recipient_user_id"] = message.get("recipient")
        if message.get("recipient_type") == "group":
            reported["recipient_type"] = "group"
        if message.get("biz_opaque_callback_data"):
            reported["biz_opaque_callback_data"] = message["biz_opaque_callback_data"]
        value = {
            "messaging_product": "whatsapp",
            "metadata": {
                "display_phone_number": self.display_phone_number,
                "phone_number_id": self.phone_number_id,
            },
            "statuses": [reported],
        }
        return {
            "object": "whatsapp_business_account",
            "entry": [
                {"id": "200000000000001", "changes": [{"value": value, "field": "messages"}]}
            ],
        }


def new_wamid(address: str) -> str:
    """Return a new message id in WhatsApp's form: base64 of the address and a random part."""
    unique = uuid.uuid4().hex[:18].upper().encode()
    content = b"\x1d\x18" + address.encode()[:40] + b"\x15\x02\x00\x11\x18\x12" + unique + b"\x00"
    return "wamid." + base64.b64encode(content).decode()


# The checks that the Cloud API makes of a message before it takes it.

_MAX_TEXT = 4096
_UNFIT = re.compile(r"[\n\t]| {5}")
_MEGABYTE = 1024 * 1024
_OFFICE = "application/vnd.openxmlformats-officedocument."
# Meta, "Supported media types": the types of each kind, and the largest size in bytes.
FILE_TYPES: dict[str, tuple[int, tuple[str, ...]]] = {
    "image": (5 * _MEGABYTE, ("image/jpeg", "image/png")),
    "video": (16 * _MEGABYTE, ("video/mp4", "video/3gpp")),
    "audio": (
        16 * _MEGABYTE,
        ("audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"),
    ),
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


def graph_error(code: int, message: str, *, status: int = 400, details: str = "") -> Answer:
    """Return a response in the format of Graph API's errors."""
    error: dict[str, Any] = {"message": message, "type": "OAuthException", "code": code}
    if details:
        error["error_data"] = {"messaging_product": "whatsapp", "details": details}
    return Answer(status, {"error": {**error, "fbtrace_id": "LoopbackTrace"}})


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
