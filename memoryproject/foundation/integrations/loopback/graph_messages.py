"""The checks that the Cloud API makes of a message before it takes it."""

from __future__ import annotations

import re
from typing import Any

from memoryproject.foundation.integrations.loopback.httpd import Answer
from memoryproject.foundation.integrations.loopback.posted_form import Form

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
