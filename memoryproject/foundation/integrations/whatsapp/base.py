"""The interface of WhatsApp providers, and the exception for their failures."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import BinaryIO, Protocol, runtime_checkable

from memoryproject.foundation.integrations.retry import AttemptFailed
from memoryproject.foundation.integrations.whatsapp.events import Event, Media
from memoryproject.foundation.integrations.whatsapp.templates import ApprovedTemplate, Slot


@dataclass(frozen=True)
class Recipient:
    """The target of a message: a phone (digits), a BSUID, a group id or another raw address.

    ``whatsapp_chat`` is the chat's address in our form (``…@c.us``, ``…@g.us``, ``…@bsuid``).
    ``by_number`` is the id of our number that writes to it; empty: our first one.
    """

    whatsapp_chat: str
    phone: str | None = None
    bsuid: str | None = None
    group_id: str | None = None
    by_number: str = field(default="", compare=False)

    @classmethod
    def at(cls, address: str, by_number: str, bsuid: str | None = None) -> "Recipient":
        """Return the recipient at an address in our form; a person may have a BSUID, too."""
        name, _, domain = address.partition("@")
        return cls(
            address,
            phone=name if domain == "c.us" and name.isdigit() else None,
            bsuid=bsuid or (name if domain == "bsuid" else None),
            group_id=name if domain == "g.us" else None,
            by_number=by_number,
        )


@dataclass(frozen=True)
class SendResult:
    """The provider accepted the message; ``provider_message_id`` doesn't prove delivery."""

    provider_message_id: str


@dataclass(eq=False, repr=False)
class SendError(AttemptFailed):
    """A message could not be sent.

    outcome_unknown: the request may have been carried out (a timeout after it was written); it must
        not be repeated automatically.
    alert: staff must act (token expired, account blocked, billing). Nothing is wrong with the
        message: it is held and sent once the provider accepts our account again.
    code: the provider's own error code, where it gave one.
    is_paused: the provider wasn't called: it has not answered lately.
    """

    _: KW_ONLY
    outcome_unknown: bool = False
    alert: bool = False
    code: int | None = None
    is_paused: bool = False


@dataclass(frozen=True)
class Template:
    """A message template that Meta has approved.

    ``parameters`` fill its ``slots``, or without them the numbered variables of its body.
    """

    name: str
    language: str
    parameters: tuple[str, ...] = ()
    slots: tuple[Slot, ...] = ()


@runtime_checkable
class TemplateProvider(Protocol):
    """A provider that sends templates, as only the Cloud API does."""

    def send_template(self, *, to: Recipient, template: Template, callback_id: str) -> SendResult:
        """Send one template. Raises SendError."""


@runtime_checkable
class TemplateLister(Protocol):
    """A provider that lists the templates that it sends.

    ``list_key``: names the account; "" where none is set.
    """

    list_key: str

    def templates(self) -> list[ApprovedTemplate]:
        """Return the approved templates of our account, by name. Raises SendError."""


@dataclass(frozen=True)
class Choice:
    """One thing that a person can choose. ``id`` (at most 200 characters) comes back with a press.

    A provider shortens ``title`` and ``description`` to what it shows.
    """

    id: str
    title: str
    description: str = ""


@runtime_checkable
class ChoiceProvider(Protocol):
    """A provider that shows buttons or a list, as only the Cloud API does."""

    def send_choices(
        self, *, to: Recipient, text: str, choices: Sequence[Choice], opener: str, callback_id: str
    ) -> SendResult:
        """Send one text with 1 to ``MAX_CHOICES`` choices. Raises SendError.

        ``opener``: the text of the button that opens them, where they are shown as a list.
        """


# WhatsApp's longest list.
MAX_CHOICES = 10


@dataclass(frozen=True)
class OutgoingFile:
    """A file to send. ``kind``: image, video, audio or document; ``open`` opens it for reading.

    The extension of ``filename`` fits ``content_type``: Green API chooses the kind by it.
    """

    kind: str
    content_type: str
    filename: str
    open: Callable[[], BinaryIO]


class WhatsAppProvider(Protocol):
    """A way to send WhatsApp messages. Implementations hold no state between calls.

    ``text_limit`` is counted as outgoing_text.text_length counts (UTF-16 code units).
    ``file_limits``: the largest size in bytes of each kind of file. ``caption_limits``: the longest
    caption of each kind, counted as ``text_limit`` is; a kind that isn't there takes none.
    """

    name: str
    text_limit: int
    file_limits: Mapping[str, int]
    caption_limits: Mapping[str, int]

    def send_text(
        self, *, to: Recipient, text: str, callback_id: str, reply_to: str | None = None
    ) -> SendResult:
        """Send one text of at most ``text_limit`` characters. Raises SendError."""

    def send_file(
        self,
        *,
        to: Recipient,
        file: OutgoingFile,
        caption: str,
        callback_id: str,
        reply_to: str | None = None,
    ) -> SendResult:
        """Send one file, with a caption or "". Raises SendError and OSError."""

    def mark_read(
        self, *, provider_message_id: str, to: Recipient | None = None, typing: bool = True
    ) -> None:
        """Show the message as read and, where the provider can, that we are typing.

        ``to`` is the message's chat. Without it, a provider that needs it (Green API) does nothing.
        Raises SendError; callers treat that as unimportant.
        """


@dataclass(frozen=True)
class Account:
    """Our account as the provider knows it.

    ``ready``: it can send. ``state``: Green API's value, such as notAuthorized; empty for the Cloud
    API. ``facts``: the provider's details under its own names.
    """

    ready: bool
    state: str
    facts: dict[str, str]


class AccountProvider(WhatsAppProvider, Protocol):
    """A provider that can be asked about our account."""

    def account(self) -> Account:
        """Ask about our account; this changes nothing. Raises SendError with a code."""


class WebhookRefusedError(Exception):
    """A request to a webhook is answered with an HTTP status and a text for its sender."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class ProviderRecord:
    """Everything that the rest of the product knows of one provider: see registry.py.

    ``url_setting``, ``number_setting``, ``key_setting``: the settings that hold its address, our
    numbers or our instance, and our key (see keys_by_number). ``needed``: those that
    must be set where it is chosen. ``service``: the name of its circuit breaker.

    ``connect``: returns a client with these settings, given ``timeout``, or ``guard_of``, which
    returns the guard of one of our numbers ("": of the first). ``parse``:
    returns the events of a webhook's body. ``verify``: takes a webhook's headers and, as soon as it
    is read, its body; raises WebhookRefusedError. ``handshake``: returns the answer to a GET with
    this query. ``has_window``: it refuses what staff write later than a day after the person's last
    message.
    """

    name: str
    title: str
    service: str
    url_setting: str
    number_setting: str
    key_setting: str
    needed: tuple[str, ...]
    connect: Callable[..., AccountProvider]
    parse: Callable[..., list[Event]]
    verify: Callable[[Mapping[str, str], bytes | None], None]
    handshake: Callable[[Mapping[str, str]], str] | None = None
    has_window: bool = True
    sends_templates: bool = False


def words_listed(setting: str) -> list[str]:
    """Return the values of a setting that are separated by commas."""
    return [word.strip() for word in setting.split(",") if word.strip()]


def keys_by_number(setting: str) -> dict[str, str]:
    """Return the keys of a setting such as ``common, 1001:own``, by number; "": of all others."""
    pairs = [word.rpartition(":") for word in words_listed(setting)]
    return {number.strip(): key.strip() for number, _, key in pairs}


# The interface for fetching a provider's files: bytes into a sink, or a MediaError.


@dataclass(eq=False, repr=False)
class MediaError(AttemptFailed):
    """A file could not be fetched.

    ``code``: "too_large"; "gone" (the provider no longer has it, or not for us); "refused" (its
    address isn't one that we fetch from); "unavailable" (the provider or the network failed, or the
    content isn't what was announced).
    """

    _: KW_ONLY
    code: str = "unavailable"


class MediaSink(Protocol):
    """Receives the file's bytes in order."""

    def write(self, block: bytes, /) -> object: ...


@runtime_checkable
class MediaProvider(Protocol):
    """A provider that supplies the files of messages."""

    def fetch_media(
        self,
        *,
        media: Media,
        provider_message_id: str,
        chat: Recipient,
        into: MediaSink,
        max_bytes: int,
    ) -> None:
        """Write the file of a message into the sink in one attempt. Raises MediaError.

        Exceptions of the sink propagate. After an error the sink may hold a part of the file.
        """


# The provider for chats from the terminal or the API. It sends nothing.

_MEGABYTE = 1024 * 1024


class ConsoleProvider:
    """A provider that sends nothing: the caller gets the answer, and the conversation stores it.

    Nothing is written anywhere else: a worker's output goes to its log, which forgetting doesn't
    reach.
    """

    name = "console"
    text_limit = 4096
    file_limits: Mapping[str, int] = dict.fromkeys(
        ("image", "video", "audio", "document"), 100 * _MEGABYTE
    )
    caption_limits: Mapping[str, int] = dict.fromkeys(file_limits, text_limit)

    def send_text(self, **_message: object) -> SendResult:
        """Return a new id for each message."""
        return SendResult(provider_message_id=f"console.{uuid.uuid4().hex}")

    send_file = send_text

    def mark_read(self, **_mark: object) -> None:
        """Do nothing: a terminal shows no read marks."""
