"""Prepare the messages of a conversation for its page."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.timezone import localdate
from django.utils.translation import gettext

from memoryproject.foundation.audit.audit_events import audit_key, pseudonyms_of
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.integrations.lenient import Fields, listed
from memoryproject.foundation.integrations.whatsapp.registry import numbers_if_several
from sessions_app import models
from sessions_app.media.presentation import ShownMedia, shown_media_of
from sessions_app.models.messages import BY_PHONE, Role
from sessions_app.models.takeover import PauseCause
from sessions_app.models.turns import TurnState
from sessions_app.presentation import message_kinds

LONG, LINES = 700, 15


def _trouble(turn: models.Turn) -> Any:
    """Return the problem of the message's turn in words, or ""."""
    words = message_kinds.TROUBLES.get(turn.state, "")
    if turn.state == TurnState.CANCELLED and turn.error:
        return translate_error(turn.error)
    if turn.state == TurnState.REFUSED and turn.error:
        return f"{words}: {translate_error(turn.error)}"
    return words


@dataclass(frozen=True)
class Card:
    """What stands beside a message's text: an icon's name, a title, lines, and an address."""

    icon: str
    title: str
    lines: Sequence[str] = ()
    link: str = ""


@dataclass(frozen=True)
class Bubble:
    """One message of the page.

    ``side``: in (the person's), out (ours) or middle (neither's). ``day`` and ``begins`` are set on
    the first message of a day and of a session. ``why``: the address of the replay of the answer.
    ``trouble``: the problem of the message's turn, which is none any more if it ``is_settled``.
    ``is_news``: the first message that the user hasn't seen yet. ``bookmarked``: by the user who
    looks at the page; ``notes``: their number. ``media``: its file. ``cards``: what the person saw
    beside the text. ``steps_before`` and ``steps_after``: that the assistant was paused, or went
    on. ``follows_marketing``: the first message after the person's word on marketing messages.
    """

    message: models.Message
    side: str
    who: str
    day: date | None
    begins: models.ChatSession | None
    sums_up: models.SummarizationMetadata | None
    tick: message_kinds.Tick | None
    quoted: models.Message | None
    reactions: Sequence[str]
    why: str
    trouble: Any
    is_settled: bool
    is_news: bool
    bookmarked: bool
    notes: int
    media: ShownMedia | None
    cards: Sequence[Card]
    steps_before: list[str] = field(default_factory=list)
    steps_after: list[str] = field(default_factory=list)
    follows_marketing: bool = False

    @property
    def kind(self) -> message_kinds.Kind | None:
        return message_kinds.kind_of(self.message.kind)

    @property
    def text(self) -> str:
        return message_kinds.text_got(self.message)

    @property
    def quoted_text(self) -> str:
        return message_kinds.text_got(self.quoted) if self.quoted else ""

    @property
    def our_number(self) -> str:
        """Return the id of our number that the message came to or went out by, if we have more."""
        number = self.message.number_id
        return number if number in numbers_if_several() else ""

    @property
    def is_card(self) -> bool:
        """Return whether the cards show all that the text says."""
        return self.message.kind in ("contacts", "order") and bool(self.cards)

    @property
    def is_long(self) -> bool:
        """Return whether the text is too long to be shown in full on any screen."""
        content = self.message.content
        return len(content) > LONG or content.count("\n") > LINES

    @property
    def filename(self) -> str:
        return str(self.message.media.get("filename", ""))


@dataclass
class _Around:
    """The objects that the messages of a page refer to."""

    quoted: dict[str, models.Message] = field(default_factory=dict)
    turns: dict[Any, models.Turn] = field(default_factory=dict)
    bookmarked: set[UUID] = field(default_factory=set)
    notes: Counter[UUID] = field(default_factory=Counter)
    authors: dict[int, str] = field(default_factory=dict)
    media: dict[UUID, ShownMedia] = field(default_factory=dict)


def bubbles_of(
    chat: models.Chat,
    messages: Sequence[models.Message],
    user: User,
    news: UUID | None = None,
    marketing_at: datetime | None = None,
    *,
    is_end: bool = True,
) -> list[Bubble]:
    """Return the messages in their order; the number of queries doesn't grow with them.

    ``news``: the first message that the user hasn't seen yet. ``is_end``: no message follows.
    ``marketing_at``: when the person last said whether they want marketing messages.
    """
    around = _around(chat, messages, user)
    steps = deque(_steps(chat, messages, is_end=is_end))
    found: list[Bubble] = []
    day: date | None = None
    session: models.ChatSession | None = None
    for message in messages:
        new_day = localdate(message.timestamp)
        begins = message.session if session is None or session != message.session else None
        first_of = new_day if new_day != day else None
        bubble = _bubble(chat, message, first_of, begins, around, news)
        while steps and steps[0][0] < message.received_at:
            bubble.steps_before.append(steps.popleft()[1])
        before = found[-1].message.timestamp if found else None
        if marketing_at and before and before <= marketing_at < message.timestamp:
            bubble = replace(bubble, follows_marketing=True)
        found.append(bubble)
        day, session = new_day, message.session
    if found:
        found[-1].steps_after.extend(text for _at, text in steps)
    return found


def _steps(
    chat: models.Chat, messages: Sequence[models.Message], *, is_end: bool
) -> Iterator[tuple[datetime, str]]:
    """Yield when the assistant was paused and went on between the messages, each in words."""
    if not messages:
        return
    steps = AuditEvent.objects.filter(
        object_id__in=pseudonyms_of(key=audit_key(), chat_id=chat.pk),
        action__in=["takeover.pause", "takeover.resume"],
        at__gte=messages[0].received_at,
    )
    if not is_end:
        steps = steps.filter(at__lt=messages[-1].received_at)
    last = ""
    for at, action, details in steps.order_by("id").values_list("at", "action", "details"):
        if action == "takeover.pause":
            cause = details.get("cause", PauseCause.STAFF)
            text = gettext("The assistant is paused: %(why)s") % {"why": PauseCause(cause).label}
        elif details.get("by") == "time":
            text = gettext("The assistant goes on: the pause is over")
        else:
            text = gettext("The assistant goes on: staff have turned it on")
        # A pause that is made longer says nothing new.
        if text != last:
            yield at, text
        last = text


def _bubble(
    chat: models.Chat,
    message: models.Message,
    day: date | None,
    begins: models.ChatSession | None,
    around: _Around,
    news: UUID | None,
) -> Bubble:
    turn = around.turns.get(message.pk)
    answered = turn is not None and turn.reply_id == message.pk
    return Bubble(
        message=message,
        side={Role.USER: "in", Role.ASSISTANT: "out"}.get(message.role, "middle"),
        who=_who(chat, message, around.authors),
        day=day,
        begins=begins,
        sums_up=getattr(message, "summarization", None),
        tick=message_kinds.TICKS.get(message.delivery_status),
        quoted=around.quoted.get(str(message.metadata.get("reply_to_id", ""))),
        reactions=[str(emoji) for emoji in message.metadata.get("reactions", {}).values()],
        why=reverse("admin:sessions_app_turn_change", args=[turn.pk]) if turn else "",
        trouble="" if turn is None or answered else _trouble(turn),
        is_settled=turn is not None and turn.state == TurnState.CANCELLED,
        is_news=message.pk == news,
        bookmarked=message.pk in around.bookmarked,
        notes=around.notes[message.pk],
        media=around.media.get(message.pk),
        cards=[] if message.revoked_at else list(_cards(message)),
    )


def _cards(message: models.Message) -> Iterator[Card]:
    """Yield what the person saw beside the text: an ad, a product, contacts, an order's lines."""
    metadata = Fields.of(message.metadata)
    if ad := metadata.at("referral"):
        lines = [text for key in ("headline", "body") if (text := ad.text(key))]
        yield Card("campaign", gettext("Came from an ad"), lines, _web_address(ad))
    if product := metadata.at("referred_product"):
        name = product.text("product_retailer_id")
        yield Card("shopping_bag", gettext("About a product"), [name] if name else [])
    if metadata.get("frequently_forwarded"):
        yield Card("forward", gettext("Forwarded many times"))
    elif metadata.get("forwarded"):
        yield Card("forward", gettext("Forwarded"))
    for contact in metadata.objects("contacts"):
        work = " · ".join(text for key in ("role", "company") if (text := contact.text(key)))
        ways = [str(way) for key in ("phones", "emails") for way in listed(contact.get(key))]
        name = contact.text("name") or work
        yield Card("person", name, [work, *ways] if work and work != name else ways)
    if message.kind == "order":
        lines = [line for text in message.content.split("\n") for line in text.split("; ")]
        yield Card("receipt_long", gettext("Ordered"), lines)


def _web_address(ad: Fields) -> str:
    address = ad.text("source_url")
    return address if address.startswith(("https://", "http://")) else ""


def _who(chat: models.Chat, message: models.Message, authors: dict[int, str]) -> str:
    """Return the author: for each message of a group, and for messages by staff everywhere."""
    is_ours = message.metadata.keys() & {"by_hand", BY_PHONE}
    if is_ours or (chat.is_group and message.role == Role.USER):
        return message_kinds.written_by(message, chat, authors)
    return ""


def _around(chat: models.Chat, messages: Iterable[models.Message], user: User) -> _Around:
    messages = list(messages)
    quoted = {str(message.metadata.get("reply_to_id", "")) for message in messages} - {""}
    keys = [message.pk for message in messages]
    turns = models.Turn.objects.only("pk", "state", "message_id", "reply_id", "error")
    about = _Around()
    # By the index over provider, number and id: a chat may hold a hundred thousand messages.
    senders = {(message.provider, message.number_id) for message in messages}
    originals = models.Message.objects.filter(
        chat=chat,
        provider__in=[provider for provider, _ in senders],
        number_id__in=[number for _, number in senders],
        provider_message_id__in=quoted,
    )
    for message in originals.defer("terms"):
        about.quoted[str(message.provider_message_id)] = message
    for turn in turns.filter(message__in=keys):
        about.turns[turn.message_id] = turn
    for turn in turns.filter(reply__in=keys):
        about.turns[turn.reply_id] = turn
    bookmarks = models.Bookmark.objects.filter(user=user, message__in=keys)
    about.bookmarked.update(bookmarks.values_list("message", flat=True))
    with_files = [message.pk for message in messages if message.media]
    for row in models.MediaFile.objects.filter(message__in=with_files):
        if row.message_id is not None:
            about.media[row.message_id] = shown_media_of(row)
    about.authors = message_kinds.author_names(messages)
    about.notes.update(
        models.Note.objects.filter(message__in=keys).values_list("message", flat=True)
    )
    return about
