"""A stand-in for Green API that checks what Green API checks, and can fail."""

from __future__ import annotations

import re
from typing import Any

from memoryproject.foundation.integrations.loopback import providers
from memoryproject.foundation.integrations.loopback.httpd import Answer, Request
from memoryproject.foundation.integrations.loopback.providers import green_error
from tests.loopback.httpd import FaultyServer, Form, posted_form

_MAX_TEXT = 20_000
_MAX_FILE = 100 * 1024 * 1024
# Green API chooses how WhatsApp shows a file by the extension of its name.
_SHOWN = {
    "imageMessage": ("jpg", "jpeg", "png"),
    "videoMessage": ("mp4", "3gp"),
    "audioMessage": ("mp3", "ogg", "m4a", "aac", "amr"),
}
_PATH = re.compile(r"/waInstance([^/]+)/([A-Za-z]+)/([^/]+)")
_CHAT = re.compile(r"[0-9A-Za-z-]+@(c\.us|g\.us|lid)")


def quota_error() -> Answer:
    """Return the response for an exhausted chat limit of the Developer plan."""
    quota = {
        "method": "correspondents",
        "used": 3,
        "total": 3,
        "status": "CORRESPONDENTS_QUOTE_EXCEEDED",
        "description": "Monthly quota has been exceeded",
    }
    return Answer(466, {"correspondentsStatus": quota})


class GreenServer(FaultyServer, providers.GreenServer):
    """One instance of Green API.

    ``files_of`` holds the ids of files by ``idMessage``, for downloadFile. ``state`` is the value
    that getStateInstance returns.
    """

    def __init__(self, **options: Any) -> None:
        self.state = "authorized"
        self.files_of: dict[str, str] = {}
        super().__init__(**options)

    @property
    def reads(self) -> list[str]:
        """The ids of the messages that were marked as read."""
        return [body["idMessage"] for body in self._asked("readChat")]

    @property
    def typing(self) -> list[str]:
        """The chats in which typing was shown."""
        return [body["chatId"] for body in self._asked("sendTyping")]

    def _asked(self, method: str) -> list[dict[str, Any]]:
        return [each.body or {} for each in self.requests if f"/{method}/" in each.path]

    def handle(self, request: Request) -> Answer:
        path = _PATH.fullmatch(request.path)
        if request.method == "GET" and path is None:
            return super().handle(request)
        if path is None:
            return green_error(404, f"Cannot POST {request.path}", path=request.path)
        instance, method, token = path.groups()
        if instance != self.id_instance or token != self.token:
            return green_error(401, "Unauthorized", path=request.path)
        if request.method == "GET":
            if method == "getStateInstance":
                return Answer(200, {"stateInstance": self.state})
            return green_error(404, f"Cannot GET {request.path}", path=request.path)
        form = posted_form(request) if method == "sendFileByUpload" else None
        body = form.fields if form else request.body
        if body is None or not _CHAT.fullmatch(str(body.get("chatId", ""))):
            return _invalid("'chatId' is required", request.path)
        if form is not None:
            return self._send_file(form, request.path)
        if method == "downloadFile":
            return self._download_file(body, request.path)
        reason = _text_refusal(body) if method == "sendMessage" else ""
        return _invalid(reason, request.path) if reason else super().handle(request)

    def _download_file(self, body: dict[str, Any], path: str) -> Answer:
        file_id = self.files_of.get(str(body.get("idMessage", "")))
        if file_id is None:
            return green_error(400, "Message not found", path=path)
        return Answer(200, {"downloadUrl": self.file_url(file_id)})

    def _send_file(self, form: Form, path: str) -> Answer:
        reason = ""
        extension = form.fields.get("fileName", form.filename).rpartition(".")[2].lower()
        if not form.content:
            reason = "'file' is required"
        elif len(form.content) > _MAX_FILE:
            reason = "'file' is larger than 100 MB"
        elif not extension:
            reason = "'fileName' must have an extension"
        elif len(form.fields.get("caption", "")) > _MAX_TEXT:
            reason = f"'caption' length must be less than or equal to {_MAX_TEXT}"
        if reason:
            return _invalid(reason, path)
        file_id = self.add_file(form.content or b"", form.content_type)
        shown = [kind for kind, extensions in _SHOWN.items() if extension in extensions]
        data: dict[str, Any] = {
            "typeMessage": shown[0] if shown else "documentMessage",
            "fileMessageData": {
                "downloadUrl": self.file_url(file_id),
                "caption": form.fields.get("caption", ""),
                "fileName": form.fields.get("fileName", form.filename),
                "mimeType": form.content_type,
            },
        }
        message_id = self.accept({**form.fields, "file": file_id}, data)
        return Answer(200, {"idMessage": message_id, "urlFile": self.file_url(file_id)})


def _invalid(reason: str, path: str) -> Answer:
    return green_error(400, f"Validation failed. Details: {reason}", path=path)


def _text_refusal(body: dict[str, Any]) -> str:
    """Return the reason to refuse a text message; empty if there is none."""
    message = body.get("message")
    if not isinstance(message, str) or not message:
        return "'message' is required"
    if len(message) > _MAX_TEXT:
        return f"'message' length must be less than or equal to {_MAX_TEXT}"
    quoted = body.get("quotedMessageId", "-")
    if not isinstance(quoted, str) or not quoted:
        return "'quotedMessageId' is not allowed to be empty"
    return ""
