"""Send messages with Green API."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations import lenient, retry
from memoryproject.foundation.integrations.whatsapp import base, downloading, posting
from memoryproject.foundation.integrations.whatsapp.events import Media
from memoryproject.foundation.integrations.whatsapp.green.content import real_text
from memoryproject.foundation.integrations.whatsapp.outgoing_text import text_length
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    BSUID_DOMAIN,
    EXTERNAL_DOMAIN,
)
from memoryproject.foundation.outside_services.guards import Guard

if TYPE_CHECKING:
    import httpx

_AUTHORIZED = "authorized"
_QUOTA = 466
_STAFF_STATUSES = (401, 403, 404, _QUOTA)
# Of an instance without a phone, or one that starts.
_NOT_AUTHORIZED = re.compile(r"not.?authorized|in starting process", re.IGNORECASE)
_TYPING_MILLISECONDS = 5000
_MAX_FILE = 100 * 1024 * 1024


class GreenProvider:
    """A WhatsAppProvider for one instance of Green API.

    ``timeout`` is in seconds, for connecting and for the answer. ``transport`` replaces the
    network. The token is in every URL: it is kept out of errors, logs and this object's repr.
    """

    name = "green"
    text_limit = 20_000
    # Green API, "SendFileByUpload": captions are for pictures and videos.
    file_limits: Mapping[str, int] = dict.fromkeys(
        ("image", "video", "audio", "document"), _MAX_FILE
    )
    caption_limits: Mapping[str, int] = {"image": 20_000, "video": 20_000}

    def __init__(
        self,
        *,
        api_url: str,
        id_instance: str,
        token: str,
        timeout: float = 15.0,
        transport: httpx.BaseTransport | None = None,
        guard: Guard | None = None,
    ) -> None:
        self.id_instance = id_instance
        self._base = f"{api_url.rstrip('/')}/waInstance{id_instance}"
        self._token = token
        self._source = downloading.Source(api_url, timeout=timeout, transport=transport)
        self._connection = posting.Connection(
            timeout, transport, guard, refuses_account=_refuses_account
        )
        guard_http_logs()

    def send_text(
        self, *, to: base.Recipient, text: str, callback_id: str, reply_to: str | None = None
    ) -> base.SendResult:
        """Send one text. Raises SendError.

        Green API doesn't return ``callback_id``; its own-send webhook shows the message instead.
        """
        if not text.strip() or text_length(text) > self.text_limit:
            raise base.SendError(
                ErrorText("send_text_length", most=self.text_limit), permanent=True
            )
        payload: dict[str, Any] = {"chatId": _chat_id(to), "message": text, "linkPreview": False}
        if reply_to:
            payload["quotedMessageId"] = reply_to
        return _sent(self._post("sendMessage", payload))

    def send_file(
        self,
        *,
        to: base.Recipient,
        file: base.OutgoingFile,
        caption: str,
        callback_id: str,
        reply_to: str | None = None,
    ) -> base.SendResult:
        """Send one file. Raises SendError and OSError.

        WhatsApp shows it by the extension of its name.
        """
        fields = {"chatId": _chat_id(to), "fileName": file.filename}
        if caption:
            fields["caption"] = caption
        if reply_to:
            fields["quotedMessageId"] = reply_to
        url = self._url("sendFileByUpload")
        return _sent(self._answer(self._connection.post_file(url, fields, file)))

    def mark_read(
        self, *, provider_message_id: str, to: base.Recipient | None = None, typing: bool = True
    ) -> None:
        """Show the message as read, and that we are typing.

        Needs ``to``: Green API finds a message by its chat.
        """
        if to is None:
            return
        chat_id = _chat_id(to)
        self._post("readChat", {"chatId": chat_id, "idMessage": provider_message_id})
        if typing:
            self._post("sendTyping", {"chatId": chat_id, "typingTime": _TYPING_MILLISECONDS})

    def fetch_media(
        self,
        *,
        media: Media,
        provider_message_id: str,
        chat: base.Recipient,
        into: base.MediaSink,
        max_bytes: int,
    ) -> None:
        """Fetch the file from the address in its webhook. Raises MediaError.

        If the file is no longer there, Green API is asked for a new address.
        """
        how: dict[str, Any] = {"into": into, "max_bytes": max_bytes, "sha256": media.sha256}
        if media.url:
            try:
                downloading.download(self._source, media.url, **how)
                return
            except base.MediaError as error:
                # Nothing was written yet: the response was an error, not a file.
                if error.code != "gone":
                    raise
        body = {"chatId": _chat_id(chat), "idMessage": provider_message_id}
        answer = downloading.ask_about_file(
            self._source, "POST", self._url("downloadFile"), json=body
        )
        if not answer.is_success:
            raise downloading.failed(answer)
        url = real_text(posting.answer_object(answer).get("downloadUrl"))
        if not url:
            raise base.MediaError("Green API has the file no more", code="gone", permanent=True)
        downloading.download(self._source, url, **how)

    def account(self) -> base.Account:
        """Return the state of our instance. The code of an error is the HTTP status."""
        answer = self._answer(self._connection.get_json(self._url("getStateInstance")))
        state = answer.text("stateInstance")
        return base.Account(state == _AUTHORIZED, state, {"stateInstance": state} if state else {})

    def _post(self, method: str, payload: dict[str, Any]) -> lenient.Fields:
        return self._answer(self._connection.post_json(self._url(method), payload))

    def _url(self, method: str) -> str:
        return f"{self._base}/{method}/{self._token}"

    def _answer(self, response: httpx.Response) -> lenient.Fields:
        if not response.is_success:
            raise self._error_of(response)
        return posting.answer_object(response)

    def _error_of(self, response: httpx.Response) -> base.SendError:
        status = response.status_code
        text = posting.answer_object(response).text("message") or posting.answer_shown(response)
        limited = status == HTTPStatus.TOO_MANY_REQUESTS
        is_refused = _refuses_account(response)
        return base.SendError(
            f"HTTP {status}: {without_token(text, self._token)}",
            permanent=not limited and status < 500,
            outcome_unknown=status >= 500,
            # 50 requests a second are allowed, so a second later requests are accepted again.
            retry_after=(retry.retry_after(response.headers) or 1.0) if limited else None,
            alert=is_refused,
            code=status,
        )


def _sent(answer: lenient.Fields) -> base.SendResult:
    message_id = answer.text("idMessage")
    if not message_id:
        raise base.SendError(ErrorText("send_no_id"), outcome_unknown=True)
    return base.SendResult(provider_message_id=message_id)


def _refuses_account(response: httpx.Response) -> bool:
    if response.status_code == HTTPStatus.BAD_REQUEST:
        return _NOT_AUTHORIZED.search(response.text[:1000]) is not None
    return response.status_code in _STAFF_STATUSES


# Ids of Meta, and chats of nobody on WhatsApp.
_UNKNOWN_TO_GREEN = (f"@{BSUID_DOMAIN}", f"@{EXTERNAL_DOMAIN}")


def _chat_id(to: base.Recipient) -> str:
    if to.group_id:
        return f"{to.group_id}@g.us"
    if to.phone:
        return f"{to.phone}@c.us"
    if "@" in to.whatsapp_chat and not to.whatsapp_chat.endswith(_UNKNOWN_TO_GREEN):
        return to.whatsapp_chat
    raise base.SendError(ErrorText("send_no_green_address"), permanent=True)


# Redact Green API's token, which is part of each URL, in logs and error texts.

_TOKEN_IN_PATH = re.compile(r"(/waInstance[^/\s]*/[^/\s]+/)[^\s/?#\"']+")


def without_token(text: str, token: str = "") -> str:
    """Return the text with the token, also that of a URL, replaced by stars."""
    shown = _TOKEN_IN_PATH.sub(r"\1***", text)
    return shown.replace(token, "***") if token else shown


class TokenFilter(logging.Filter):
    """Replaces tokens in log records with a Green API URL; no record is dropped."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if "/waInstance" in message:
            record.msg, record.args = without_token(message), ()
        return True


_FILTER = TokenFilter()


def guard_http_logs() -> None:
    """Redact tokens in the logs of the HTTP libraries. A repeated call changes nothing."""
    for name in ("httpx", "httpcore", "httpcore.connection", "httpcore.http11"):
        logging.getLogger(name).addFilter(_FILTER)
