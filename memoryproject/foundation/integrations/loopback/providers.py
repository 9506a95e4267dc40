"""Stand-ins for Meta's Graph API and Green API, as far as the demo needs them.

They take messages of one number and report their statuses by webhooks: signed ones with
``biz_opaque_callback_data``, and ones with a token. They hand out the files that messages name.
"""

import base64
import hashlib
import hmac
import json
import ssl
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx

from memoryproject.foundation.integrations.loopback.httpd import Answer, LoopbackServer, Request

_WEBHOOK_TRIES = 3
_PAUSE_BETWEEN_TRIES = 0.2


def sign(secret: str, body: bytes) -> str:
    """Return the value of ``X-Hub-Signature-256`` for a body, under Meta's app secret."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def body_bytes(payload: Mapping[str, Any]) -> bytes:
    """Return the payload as the providers write it: compact, with non-ASCII characters escaped."""
    return json.dumps(payload, separators=(",", ":")).encode()


def signed_headers(secret: str, body: bytes) -> dict[str, str]:
    """Return the headers of a Cloud API webhook."""
    return {"Content-Type": "application/json", "X-Hub-Signature-256": sign(secret, body)}


def token_headers(token: str) -> dict[str, str]:
    """Return the headers of a Green API webhook."""
    return {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}


@dataclass(frozen=True)
class StoredFile:
    """A file in the form that its sender sent."""

    content: bytes
    mime_type: str


class ProviderServer(LoopbackServer):
    """The common part: webhooks to ``webhook_url``, if one is given, and files.

    Every accepted message is followed by one webhook for each of ``statuses``. ``sent`` holds the
    accepted messages, ``files`` the files that messages can name.
    """

    def __init__(
        self,
        *,
        webhook_url: str = "",
        statuses: tuple[str, ...] = ("sent", "delivered", "read"),
        port: int = 0,
    ) -> None:
        super().__init__(port=port)
        self.webhook_url = webhook_url
        self.statuses = statuses
        self.sent: list[dict[str, Any]] = []
        self.files: dict[str, StoredFile] = {}
        # One thread keeps the webhooks in order.
        self._courier = ThreadPoolExecutor(max_workers=1)

    def add_file(
        self, content: bytes, mime_type: str = "application/pdf", *, file_id: str = ""
    ) -> str:
        """Add a file that a message can name; return its id. Its address is file_url()."""
        file_id = file_id or str(uuid.uuid4().int)[:15]
        self.files[file_id] = StoredFile(content, mime_type)
        return file_id

    def file_url(self, file_id: str) -> str:
        return f"{self.url}/files/{file_id}"

    def file_answer(self, path: str) -> Answer | None:
        """Return the file at a path; None if there is none."""
        stored = self.files.get(path.removeprefix("/files/"))
        if stored is None:
            return None
        return Answer(200, {}, {"Content-Type": stored.mime_type}, content=stored.content)

    def stop(self) -> None:
        super().stop()
        self._courier.shutdown(cancel_futures=True)

    def report(self, payload: dict[str, Any]) -> None:
        """Post a webhook body soon, with the headers that prove its origin."""
        if self.webhook_url:
            self._courier.submit(self._post, body_bytes(payload))

    def wait_until_reported(self) -> None:
        """Wait until all webhooks were posted. Raises TimeoutError after a minute."""
        self._courier.submit(bool).result(timeout=60)

    def webhook_headers(self, body: bytes) -> dict[str, str]:
        """Return the headers of a webhook with this body."""
        raise NotImplementedError

    def _post(self, body: bytes) -> None:
        how: dict[str, Any] = {"timeout": 10, "trust_env": False, "verify": _tls()}
        for _ in range(_WEBHOOK_TRIES):
            with suppress(httpx.HTTPError):
                headers = self.webhook_headers(body)
                answer = httpx.post(self.webhook_url, content=body, headers=headers, **how)
                if answer.status_code == httpx.codes.OK:
                    return
            time.sleep(_PAUSE_BETWEEN_TRIES)


@cache
def _tls() -> ssl.SSLContext:
    """Return what each request needs for TLS. Making it takes longer than a request."""
    return httpx.create_ssl_context()


class GraphServer(ProviderServer):
    """The Cloud API of one phone number. ``sent`` holds the request's body and the ``id``."""

    def __init__(
        self,
        *,
        access_token: str,
        phone_number_id: str = "100000000000001",
        display_phone_number: str = "15550100001",
        app_secret: str = "",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.phone_number_id = phone_number_id
        self.display_phone_number = display_phone_number
        self.access_token = access_token
        self.app_secret = app_secret

    def token_for(self, _request: Request) -> str:
        """Return the token that a request must carry."""
        return self.access_token

    def handle(self, request: Request) -> Answer:
        if request.headers.get("authorization") != f"Bearer {self.token_for(request)}":
            return graph_error(190, "Invalid OAuth access token", status=401)
        if request.method == "GET":
            return self.file_answer(request.path) or self._details(request.path)
        body = request.body or {}
        if body.get("status") == "read":
            return Answer(200, {"success": True})
        return self._accept(body)

    def _details(self, path: str) -> Answer:
        """Return the address of the file with the id at the end of the path, and its hash."""
        file_id = path.rpartition("/")[2]
        stored = self.files.get(file_id)
        if stored is None:
            return graph_error(100, "Unsupported get request. Object does not exist")
        details = {
            "messaging_product": "whatsapp",
            "url": self.file_url(file_id),
            "mime_type": stored.mime_type,
            "sha256": hashlib.sha256(stored.content).hexdigest(),
            "file_size": str(len(stored.content)),
            "id": file_id,
        }
        return Answer(200, details)

    def _accept(self, body: dict[str, Any]) -> Answer:
        address = str(body.get("to") or body.get("recipient"))
        unique = uuid.uuid4().hex[:18].upper().encode()
        # WhatsApp's ids are base64 of the address and a random part.
        name = b"\x1d\x18" + address.encode()[:40] + b"\x15\x02\x00\x11\x18\x12" + unique + b"\x00"
        wamid = "wamid." + base64.b64encode(name).decode()
        self.sent.append({**body, "id": wamid})
        for status in self.statuses:
            self.report(self.status_payload(wamid, status, body))
        contact = {"input": address, "wa_id" if body.get("to") else "user_id": address}
        accepted = {"contacts": [contact], "messages": [{"id": wamid}]}
        return Answer(200, {"messaging_product": "whatsapp", **accepted})

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
        change = {"value": value, "field": "messages"}
        return {
            "object": "whatsapp_business_account",
            "entry": [{"id": "200000000000001", "changes": [change]}],
        }


def graph_error(code: int, message: str, *, status: int = 400, details: str = "") -> Answer:
    """Return a response in the format of Graph API's errors."""
    error: dict[str, Any] = {"message": message, "type": "OAuthException", "code": code}
    if details:
        error["error_data"] = {"messaging_product": "whatsapp", "details": details}
    return Answer(status, {"error": {**error, "fbtrace_id": "LoopbackTrace"}})


class GreenServer(ProviderServer):
    """One instance of Green API. ``sent`` holds the request's body and the ``idMessage``.

    The own-send webhook precedes the statuses.
    """

    def __init__(
        self,
        *,
        token: str,
        id_instance: str = "1101000001",
        wid: str = "15550100001@c.us",
        webhook_token: str = "",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.id_instance = id_instance
        self.token = token
        self.wid = wid
        self.webhook_token = webhook_token

    def handle(self, request: Request) -> Answer:
        if request.method == "GET":
            # Its files are in a public store under names that can't be guessed.
            return self.file_answer(request.path) or Answer(404, {})
        instance, method, token = (request.path.split("/") + [""] * 4)[1:4]
        if (instance, token) != (f"waInstance{self.id_instance}", self.token):
            return green_error(401, "Unauthorized", path=request.path)
        body = request.body or {}
        if method == "sendMessage":
            return self._accept(body)
        if method == "readChat":
            return Answer(200, {"setRead": True})
        if method == "sendTyping":
            return Answer(200, {})
        return green_error(404, f"Cannot POST {request.path}", path=request.path)

    def _accept(self, body: dict[str, Any]) -> Answer:
        extended = {"text": body["message"], "description": "", "title": "", "previewType": "None"}
        data: dict[str, Any] = {
            "typeMessage": "extendedTextMessage",
            "extendedTextMessageData": extended,
        }
        if quoted := body.get("quotedMessageId"):
            data["typeMessage"] = "quotedMessage"
            extended["stanzaId"] = quoted
            data["quotedMessage"] = {"stanzaId": quoted, "participant": body["chatId"]}
        return Answer(200, {"idMessage": self.accept(body, data)})

    def accept(self, message: dict[str, Any], data: dict[str, Any]) -> str:
        """Keep a message, report it with ``data`` and its statuses; return its id."""
        message_id = uuid.uuid4().hex[:20].upper()
        self.sent.append({**message, "idMessage": message_id})
        sender = {"chatId": message["chatId"], "chatName": "", "sender": self.wid}
        self.report(
            {
                **self._about(message_id, "outgoingAPIMessageReceived"),
                "senderData": {**sender, "senderName": "", "senderContactName": ""},
                "messageData": data,
            }
        )
        for status in self.statuses:
            self.report(
                {
                    **self._about(message_id, "outgoingMessageStatus"),
                    "chatId": message["chatId"],
                    "status": status,
                    "sendByApi": True,
                }
            )
        return message_id

    def webhook_headers(self, body: bytes) -> dict[str, str]:
        return token_headers(self.webhook_token)

    def _about(self, message_id: str, kind: str) -> dict[str, Any]:
        # Green API's own documents show the instance's id as a number.
        number = int(self.id_instance) if self.id_instance.isdigit() else self.id_instance
        return {
            "typeWebhook": kind,
            "instanceData": {"idInstance": number, "wid": self.wid, "typeInstance": "whatsapp"},
            "timestamp": int(time.time()),
            "idMessage": message_id,
        }


def green_error(status: int, message: str, *, path: str = "") -> Answer:
    """Return a response in the format of Green API's errors, which repeat the request's path."""
    return Answer(status, {"statusCode": status, "path": path, "message": message})
