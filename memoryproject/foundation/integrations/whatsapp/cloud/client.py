"""Send messages with the Meta Cloud API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations import lenient, retry
from memoryproject.foundation.integrations.whatsapp import downloading, posting
from memoryproject.foundation.integrations.whatsapp.base import (
    Account,
    Choice,
    MediaError,
    MediaSink,
    OutgoingFile,
    Recipient,
    SendError,
    SendResult,
    Template,
)
from memoryproject.foundation.integrations.whatsapp.cloud.error_policies import policy_for
from memoryproject.foundation.integrations.whatsapp.events import Media
from memoryproject.foundation.integrations.whatsapp.outgoing_text import shortened, text_length
from memoryproject.foundation.integrations.whatsapp.templates import (
    APPROVED,
    ApprovedTemplate,
    components_of,
    positional,
    read_template,
)
from memoryproject.foundation.outside_services.guards import Guard

if TYPE_CHECKING:
    import httpx


_MEGABYTE = 1024 * 1024
_TEMPLATE_FIELDS = "name,status,category,language,parameter_format,components"
_MAX_PAGES = 20
_ACCOUNT_FIELDS = ("display_phone_number", "verified_name", "quality_rating")


@dataclass(frozen=True)
class _Line:
    """One of our numbers: where and with which token it sends."""

    url: str
    connection: posting.Connection


class CloudProvider:
    """A WhatsAppProvider for our phone numbers at the Cloud API.

    ``phone_number_id`` sends where the recipient names none of ``others``, which are by their ids,
    each with its token and guard. ``api_url`` holds the version
    (``https://graph.facebook.com/v24.0``). ``timeout`` is in seconds, for connecting and for the
    answer. ``transport`` replaces the network.
    """

    name = "cloud"
    text_limit = 4096
    # Meta, "Supported media types".
    file_limits: Mapping[str, int] = {
        "image": 5 * _MEGABYTE,
        "video": 16 * _MEGABYTE,
        "audio": 16 * _MEGABYTE,
        "document": 100 * _MEGABYTE,
    }
    caption_limits: Mapping[str, int] = {"image": 1024, "video": 1024, "document": 1024}

    def __init__(
        self,
        *,
        api_url: str,
        phone_number_id: str,
        access_token: str,
        timeout: float = 15.0,
        transport: httpx.BaseTransport | None = None,
        guard: Guard | None = None,
        others: Mapping[str, tuple[str, Guard]] = MappingProxyType({}),
        business_account_id: str = "",
    ) -> None:
        self.phone_number_id = phone_number_id
        self._business_account_id = business_account_id
        self._api_url = api_url.rstrip("/")
        self.list_key = f"{self._api_url} {business_account_id}" if business_account_id else ""
        self._source = downloading.Source(self._api_url, timeout=timeout, transport=transport)
        self._lines = {
            number: _Line(
                f"{self._api_url}/{quote(number, safe='')}",
                posting.Connection(
                    timeout,
                    transport,
                    watch,
                    {"Authorization": f"Bearer {token}"},
                    _refuses_account,
                ),
            )
            for number, (token, watch) in {phone_number_id: (access_token, guard), **others}.items()
        }

    def _line(self, to: Recipient | None) -> _Line:
        """Return the number that writes to a recipient."""
        return self._lines.get(to.by_number if to else "") or self._lines[self.phone_number_id]

    def send_text(
        self, *, to: Recipient, text: str, callback_id: str, reply_to: str | None = None
    ) -> SendResult:
        """Send one text. The status webhooks return ``callback_id``. Raises SendError."""
        if not text.strip() or text_length(text) > self.text_limit:
            raise SendError(ErrorText("send_text_length", most=self.text_limit), permanent=True)
        content = {"preview_url": False, "body": text}
        return self._send(to, "text", content, callback_id, reply_to)

    def send_choices(
        self, *, to: Recipient, text: str, choices: Sequence[Choice], opener: str, callback_id: str
    ) -> SendResult:
        """Send one text with up to three reply buttons, else with a list. Raises SendError."""
        content = interactive_content(text, choices, opener)
        return self._send(to, "interactive", content, callback_id)

    def send_file(
        self,
        *,
        to: Recipient,
        file: OutgoingFile,
        caption: str,
        callback_id: str,
        reply_to: str | None = None,
    ) -> SendResult:
        """Upload one file and send a message with it. Raises SendError and OSError."""
        _addressed(to)
        about = {"id": self._upload(file, self._line(to))}
        if caption:
            about["caption"] = caption
        if file.kind == "document":
            about["filename"] = file.filename
        return self._send(to, file.kind, about, callback_id, reply_to)

    def _upload(self, file: OutgoingFile, line: _Line) -> str:
        """Return the id of the uploaded file. An upload alone reaches nobody: it may be repeated.

        Raises SendError and OSError.
        """
        try:
            response = line.connection.post_file(
                f"{line.url}/media",
                {"messaging_product": "whatsapp", "type": file.content_type},
                file,
            )
            media_id = _answer(response).text("id")
        except SendError as error:
            error.outcome_unknown = False
            raise
        if not media_id:
            raise SendError(ErrorText("send_no_id"))
        return media_id

    def send_template(self, *, to: Recipient, template: Template, callback_id: str) -> SendResult:
        """Send one approved template with its values. Raises SendError."""
        about: dict[str, Any] = {"name": template.name, "language": {"code": template.language}}
        values = template.parameters
        components = components_of(template.slots or positional(len(values)), values)
        if components:
            about["components"] = components
        return self._send(to, "template", about, callback_id)

    def templates(self) -> list[ApprovedTemplate]:
        """Return the approved templates of the business account, by name. Raises SendError."""
        account = quote(self._business_account_id, safe="")
        url = f"{self._api_url}/{account}/message_templates"
        query = {"fields": _TEMPLATE_FIELDS, "status": APPROVED, "limit": "100"}
        found: list[ApprovedTemplate] = []
        for _ in range(_MAX_PAGES):
            answer = _answer(self._line(None).connection.get_json(url, query))
            for about in answer.objects("data"):
                template = read_template(about)
                # Meta leaves the status out where all have the one that was asked for.
                if template.name and about.text("status").upper() in ("", APPROVED):
                    found.append(template)
            paging = answer.at("paging")
            after = paging.at("cursors").text("after")
            if not (paging.text("next") and after):
                break
            query["after"] = after
        return sorted(found, key=lambda template: (template.name, template.language))

    def mark_read(
        self, *, provider_message_id: str, to: Recipient | None = None, typing: bool = True
    ) -> None:
        """Show the message and all earlier ones as read; ``typing`` shows for up to 25 seconds."""
        payload: dict[str, Any] = {
            "messaging_product": "whatsapp",
            "status": "read",
            "message_id": provider_message_id,
        }
        if typing:
            payload["typing_indicator"] = {"type": "text"}
        self._post(payload, self._line(to))

    def fetch_media(
        self,
        *,
        media: Media,
        provider_message_id: str,
        chat: Recipient,
        into: MediaSink,
        max_bytes: int,
    ) -> None:
        """Ask for the file's address, which Meta keeps valid for five minutes, and fetch the file.

        Raises MediaError.
        """
        if not media.media_id:
            raise MediaError("the message names no file", code="gone", permanent=True)
        about_url = f"{self._api_url}/{quote(media.media_id, safe='')}"
        headers = self._line(chat).connection.headers
        answer = downloading.ask_about_file(self._source, "GET", about_url, headers=headers)
        if not answer.is_success:
            raise _media_error_of(answer)
        about = posting.answer_object(answer)
        if (about.whole("file_size") or 0) > max_bytes:
            raise downloading.too_large()
        downloading.download(
            self._source,
            about.text("url"),
            into=into,
            max_bytes=max_bytes,
            headers=headers,
            sha256=about.text("sha256") or media.sha256,
        )

    def account(self) -> Account:
        """Return Meta's details of our phone numbers; those of each have the same names."""
        facts: dict[str, list[str]] = {}
        for line in self._lines.values():
            query = {"fields": ",".join(_ACCOUNT_FIELDS)}
            answer = _answer(line.connection.get_json(line.url, query))
            for name in filter(answer.text, _ACCOUNT_FIELDS):
                facts.setdefault(name, []).append(answer.text(name))
        return Account(True, "", {name: ", ".join(texts) for name, texts in facts.items()})

    def _send(
        self,
        to: Recipient,
        kind: str,
        content: Mapping[str, Any],
        callback_id: str,
        reply_to: str | None = None,
    ) -> SendResult:
        payload: dict[str, Any] = {
            "messaging_product": "whatsapp",
            **_addressed(to),
            "type": kind,
            kind: content,
            "biz_opaque_callback_data": callback_id,
        }
        if reply_to:
            payload["context"] = {"message_id": reply_to}
        messages = self._post(payload, self._line(to)).objects("messages")
        wamid = messages[0].text("id") if messages else ""
        if not wamid:
            raise SendError(ErrorText("send_no_id"), outcome_unknown=True)
        return SendResult(provider_message_id=wamid)

    def _post(self, payload: dict[str, Any], line: _Line) -> lenient.Fields:
        return _answer(line.connection.post_json(f"{line.url}/messages", payload))


def _answer(response: httpx.Response) -> lenient.Fields:
    if not response.is_success:
        raise error_of(response)
    return posting.answer_object(response)


def _addressed(to: Recipient) -> dict[str, str]:
    if to.group_id:
        return {"recipient_type": "group", "to": to.group_id}
    if to.phone:
        return {"recipient_type": "individual", "to": to.phone}
    if to.bsuid:
        return {"recipient_type": "individual", "recipient": to.bsuid}
    raise SendError(ErrorText("send_no_cloud_address"), permanent=True)


def _refuses_account(response: httpx.Response) -> bool:
    return not response.is_success and error_of(response).alert


def _media_error_of(response: httpx.Response) -> MediaError:
    """Convert an error like error_of; a repeated request for a file is always safe."""
    error = error_of(response)
    gone = error.permanent and error.code in (None, 33, 100, 131052)
    return MediaError(
        error_text(error),
        code="gone" if gone else "unavailable",
        permanent=error.permanent,
        retry_after=error.retry_after,
    )


def error_of(response: httpx.Response) -> SendError:
    """Convert an error response to a SendError."""
    error = posting.answer_object(response).at("error")
    code = error.whole("code")
    # An object that the token may not use, or that is gone, is told by a subcode.
    found = 33 if (code, error.whole("error_subcode")) == (100, 33) else code
    policy = policy_for(found, response.status_code, transient=error.flag("is_transient"))
    words = (error.text("message"), error.at("error_data").text("details"))
    text = ": ".join(filter(None, words))
    return SendError(
        f"HTTP {response.status_code}: {text or posting.answer_shown(response)}",
        permanent=policy.permanent,
        outcome_unknown=policy.outcome_unknown,
        retry_after=None
        if policy.permanent
        else retry.retry_after(response.headers) or policy.retry_after,
        alert=policy.alert,
        code=code,
    )


# Questions with choices: reply buttons, or a list.

# Meta, "Interactive reply buttons" and "Interactive list messages".
_MAX_BUTTONS = 3
_MAX_BUTTONS_TEXT = 1024
_BUTTON_TITLE, _ROW_TITLE, _ROW_DESCRIPTION, _OPENER = 20, 24, 72, 20


def interactive_content(text: str, choices: Sequence[Choice], opener: str) -> dict[str, Any]:
    """Return reply buttons, or a list where these are too many or the text is too long."""
    as_buttons = len(choices) <= _MAX_BUTTONS and text_length(text) <= _MAX_BUTTONS_TEXT
    titles = _titles(choices, _BUTTON_TITLE if as_buttons else _ROW_TITLE)
    if as_buttons:
        buttons = [
            {"type": "reply", "reply": {"id": choice.id, "title": title}}
            for choice, title in zip(choices, titles, strict=True)
        ]
        return {"type": "button", "body": {"text": text}, "action": {"buttons": buttons}}
    rows = []
    for choice, title in zip(choices, titles, strict=True):
        row = {"id": choice.id, "title": title}
        # A title that is cut is shown whole below.
        cut_off = choice.title if title.endswith("…") else ""
        if about := choice.description or cut_off:
            row["description"] = shortened(about, _ROW_DESCRIPTION)
        rows.append(row)
    action = {"button": shortened(opener, _OPENER), "sections": [{"rows": rows}]}
    return {"type": "list", "body": {"text": text}, "action": action}


def _titles(choices: Sequence[Choice], most: int) -> list[str]:
    """Return the titles as they are shown: Meta refuses two buttons that look alike."""
    titles = [shortened(choice.title, most) for choice in choices]
    if len(set(titles)) == len(titles):
        return titles
    numbered = (f"{number}. {choice.title}" for number, choice in enumerate(choices, start=1))
    return [shortened(title, most) for title in numbered]
