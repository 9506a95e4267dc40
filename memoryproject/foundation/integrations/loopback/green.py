"""A stand-in for Green API: it accepts messages of one instance and reports their statuses.

It checks what Green API checks and answers in the same formats: ``idMessage``, errors that repeat
the path, the own-send webhook and status webhooks with the token in their header.
"""

from __future__ import annotations

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
from memoryproject.foundation.integrations.loopback.webhooks import token_headers

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


def green_error(status: int, message: str, *, path: str = "") -> Answer:
    """Return a response in the format of Green API's errors, which repeat the request's path."""
    return Answer(status, {"statusCode": status, "path": path, "message": message})


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


class GreenServer(ProviderServer):
    """One instance of Green API. ``sent`` holds the request's body and the ``idMessage``.

    The own-send webhook precedes the statuses. ``typing`` holds the chats in which typing was
    shown. ``files_of`` holds the ids of files by ``idMessage``, for downloadFile. ``state`` is the
    value that getStateInstance returns.
    """

    def __init__(
        self,
        *,
        token: str,
        id_instance: str = "1101000001",
        wid: str = "15550100001@c.us",
        webhook_token: str = "",
        webhook_url: str = "",
        statuses: tuple[str, ...] = ("sent", "delivered", "read"),
        status_delay: float = 0.0,
        port: int = 0,
    ) -> None:
        super().__init__(
            webhook_url=webhook_url, statuses=statuses, status_delay=status_delay, port=port
        )
        self.id_instance = id_instance
        self.token = token
        self.wid = wid
        self.webhook_token = webhook_token
        self.state = "authorized"
        self.typing: list[str] = []
        self.files_of: dict[str, str] = {}

    def handle(self, request: Request) -> Answer:
        if request.method == "GET":
            if request.path.startswith("/waInstance"):
                return self._state(request.path)
            # Its files are in a public store under names that can't be guessed.
            return self.file_answer(request.path) or Answer(404, {})
        path = _PATH.fullmatch(request.path)
        if path is None:
            return green_error(404, f"Cannot POST {request.path}", path=request.path)
        instance, method, token = path.groups()
        if instance != self.id_instance or token != self.token:
            return green_error(401, "Unauthorized", path=request.path)
        form = posted_form(request) if method == "sendFileByUpload" else None
        body = form.fields if form else request.body
        if body is None or not _CHAT.fullmatch(str(body.get("chatId", ""))):
            return green_error(
                400, "Validation failed. Details: 'chatId' is required", path=request.path
            )
        if method == "sendMessage":
            return self._send(body, request.path)
        if form is not None:
            return self._send_file(form, request.path)
        if method == "readChat":
            self.reads.append(str(body.get("idMessage", "")))
            return Answer(200, {"setRead": True})
        if method == "sendTyping":
            self.typing.append(body["chatId"])
            return Answer(200, {})
        if method == "downloadFile":
            return self._download_file(body, request.path)
        return green_error(404, f"Cannot POST {request.path}", path=request.path)

    def _state(self, requested: str) -> Answer:
        path = _PATH.fullmatch(requested)
        if path is None or path.group(2) != "getStateInstance":
            return green_error(404, f"Cannot GET {requested}", path=requested)
        if path.group(1) != self.id_instance or path.group(3) != self.token:
            return green_error(401, "Unauthorized", path=requested)
        return Answer(200, {"stateInstance": self.state})

    def _download_file(self, body: dict[str, Any], path: str) -> Answer:
        file_id = self.files_of.get(str(body.get("idMessage", "")))
        if file_id is None:
            return green_error(400, "Message not found", path=path)
        return Answer(200, {"downloadUrl": self.file_url(file_id)})

    def _send(self, body: dict[str, Any], path: str) -> Answer:
        message = body.get("message")
        if not isinstance(message, str) or not message:
            return green_error(400, "Validation failed. Details: 'message' is required", path=path)
        if len(message) > _MAX_TEXT:
            details = f"'message' length must be less than or equal to {_MAX_TEXT}"
            return green_error(400, f"Validation failed. Details: {details}", path=path)
        quoted = body.get("quotedMessageId", "-")
        if not isinstance(quoted, str) or not quoted:
            details = "'quotedMessageId' is not allowed to be empty"
            return green_error(400, f"Validation failed. Details: {details}", path=path)
        message_id = uuid.uuid4().hex[:20].upper()
        self.sent.append({**body, "idMessage": message_id})
        self.report(self.own_send_payload(message_id, body))
        for status in self.statuses:
            self.report(self.status_payload(message_id, status, body["chatId"]))
        return Answer(200, {"idMessage": message_id})

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
            return green_error(400, f"Validation failed. Details: {reason}", path=path)
        message_id = uuid.uuid4().hex[:20].upper()
        file_id = self.add_file(form.content or b"", form.content_type)
        self.sent.append({**form.fields, "idMessage": message_id, "file": file_id})
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
        chat_id = form.fields["chatId"]
        self.report(self._own_send(message_id, chat_id, data))
        for status in self.statuses:
            self.report(self.status_payload(message_id, status, chat_id))
        return Answer(200, {"idMessage": message_id, "urlFile": self.file_url(file_id)})

    def webhook_headers(self, body: bytes) -> dict[str, str]:
        return token_headers(self.webhook_token)

    def own_send_payload(self, message_id: str, message: dict[str, Any]) -> dict[str, Any]:
        """Return the webhook that shows a message sent through the API."""
        extended: dict[str, Any] = {
            "text": message["message"],
            "description": "",
            "title": "",
            "previewType": "None",
            "jpegThumbnail": "",
            "forwardingScore": 0,
            "isForwarded": False,
        }
        data: dict[str, Any] = {
            "typeMessage": "extendedTextMessage",
            "extendedTextMessageData": extended,
        }
        if quoted := message.get("quotedMessageId"):
            data["typeMessage"] = "quotedMessage"
            extended["stanzaId"] = quoted
            data["quotedMessage"] = {"stanzaId": quoted, "participant": message["chatId"]}
        return self._own_send(message_id, message["chatId"], data)

    def _own_send(self, message_id: str, chat_id: str, data: dict[str, Any]) -> dict[str, Any]:
        return {
            **self._about(message_id, "outgoingAPIMessageReceived"),
            "senderData": {
                "chatId": chat_id,
                "chatName": "",
                "sender": self.wid,
                "senderName": "",
                "senderContactName": "",
            },
            "messageData": data,
        }

    def status_payload(self, message_id: str, status: str, chat_id: str) -> dict[str, Any]:
        """Return the webhook that reports a message's status."""
        return {
            **self._about(message_id, "outgoingMessageStatus"),
            "chatId": chat_id,
            "status": status,
            "sendByApi": True,
        }

    def _about(self, message_id: str, kind: str) -> dict[str, Any]:
        # Green API's own documents show the instance's id as a number.
        instance: int | str = self.id_instance
        if self.id_instance.isdigit():
            instance = int(self.id_instance)
        return {
            "typeWebhook": kind,
            "instanceData": {
                "idInstance": instance,
                "wid": self.wid,
                "typeInstance": "whatsapp",
            },
            "timestamp": int(time.time()),
            "idMessage": message_id,
        }
