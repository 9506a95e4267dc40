"""What POST /v1/audio/transcriptions takes and answers."""

from __future__ import annotations

import hashlib
from email import message_from_bytes
from email.message import Message

from tests.loopback.openai_behaviours import Json, error_object

ENDINGS = ("flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm")


def read_form(content_type: str, content: bytes) -> Json | None:
    """The fields of a multipart body; the file as its filename, type, size and SHA-256. None
    where it is none."""
    if not content_type.startswith("multipart/form-data"):
        return None
    whole = message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + content)
    if not whole.is_multipart():
        return None
    parts = whole.get_payload()
    fields: Json = {}
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, Message):
            name = part.get_param("name", header="content-disposition")
            fields[str(name)] = _field(part)
    return fields


def find_fault(body: Json) -> Json | None:
    """The error object for a request that OpenAI refuses; None for a good one."""
    file = body.get("file")
    if not isinstance(file, dict) or not body.get("model"):
        return error_object("Field required", kind="invalid_request_error", param="file")
    if not file["size"]:
        return error_object("Audio file is too short.", kind="invalid_request_error")
    if file["filename"].rpartition(".")[2] not in ENDINGS:
        return error_object("Invalid file format.", kind="invalid_request_error", param="file")
    return None


def transcription(text: str) -> Json:
    """The answer's JSON."""
    return {"text": text, "usage": {"type": "duration", "seconds": 1}}


def _field(part: Message) -> object:
    content = part.get_payload(decode=True)
    raw = content if isinstance(content, bytes) else b""
    filename = part.get_filename()
    if filename is None:
        return raw.decode(errors="replace")
    return {
        "filename": filename,
        "type": part.get_content_type(),
        "size": len(raw),
        "sha256": hashlib.sha256(raw).hexdigest(),
    }
