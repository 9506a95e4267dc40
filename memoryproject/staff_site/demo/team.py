"""Actions of the café's staff on conversations, each at its time.

Staff label, assign, note, bookmark, read and review.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.staff_site.demo.demo_people import (
    DANA,
    EMMA,
    MAYA,
    OMAR,
    SHIFTS,
    YOSSI,
    Group,
    Person,
)
from sessions_app.inbox.facade import (
    bookmark_set,
    chats_assign,
    chats_label,
    chats_mark_read,
    chats_review,
    note_write,
)
from sessions_app.models import CannedReply, Chat, Label, Message

CANNED_REPLIES = (
    ("Greeting", "hi", "Hello {name|there}, this is the team of {business}. How can we help?"),
    ("Opening hours", "hours", "We are open Sunday to Thursday 7:00–19:00, Friday 7:00–14:30."),
    (
        "Order is ready",
        "ready",
        "{name}, your order is ready. Pick it up until we close.",
    ),
    ("Where we are", "כתובת", "שלום {name}, אנחנו ברחוב מסדה 24, חיפה. להתראות ב-{business}!"),
)
LABELS = (
    ("Wedding", "violet"),
    ("Allergy", "red"),
    ("Catering", "blue"),
    ("Regular", "green"),
    ("Call back", "amber"),
)
NUTS = "One question: is the cake safe for someone with a nut allergy?"


@dataclass(frozen=True)
class Deed:
    """An action: ``do`` runs at ``time``, ``days`` days ago."""

    days: int
    time: str
    do: Callable[[], object]


def _labels() -> None:
    for name, colour in LABELS:
        Label.objects.create(name=name, colour=colour)


def _canned_replies() -> None:
    for name, shortcut, text in CANNED_REPLIES:
        CannedReply.objects.create(name=name, shortcut=shortcut, text=text)


def _label(of: Person | Group, name: str, who: str) -> None:
    label = Label.objects.get(name=name)
    chats_label(chat_ids=[_chat(of)], label=label, actor=_actor(who))


def _assign(of: Person | Group, to: str) -> None:
    chats_assign(chat_ids=[_chat(of)], assignee=_user(to), actor=_actor(to))


def _note(of: Person | Group, who: str, text: str, on: str = "") -> None:
    """Add a note to the chat, or to the message with exactly this text."""
    note_write(
        user=_user(who),
        chat_id=_chat(of),
        text=text,
        actor=_actor(who),
        message_id=_message(of, on) if on else None,
    )


def _bookmark(of: Person | Group, on: str = "") -> None:
    """Bookmark a chat, or the message with exactly this text.

    Bookmarks are personal. Users who existed before the demo get them too, because they view it.
    """
    for user in _lookers():
        bookmark_set(
            user=user,
            chat_id=_chat(of),
            actor=_actor(user.get_username()),
            wanted=True,
            message_id=_message(of, on) if on else None,
        )


def _review(*of: Person | Group, who: str) -> None:
    chats_review(user=_user(who), chat_ids=[_chat(each) for each in of], actor=_actor(who))


def _read_all() -> None:
    chats = list(Chat.objects.values_list("pk", flat=True))
    for user in _lookers():
        chats_mark_read(user=user, chat_ids=chats, actor=_actor(user.get_username()))


def _review_all(who: str) -> None:
    chats = list(Chat.objects.values_list("pk", flat=True))
    chats_review(user=_user(who), chat_ids=chats, actor=_actor(who))


DEEDS = (
    Deed(29, "10:00", _labels),
    Deed(29, "10:05", _canned_replies),
    Deed(17, "11:00", lambda: _label(DANA, "Allergy", "noa")),
    Deed(
        17,
        "11:01",
        lambda: _note(DANA, "noa", "אלרגיה לאגוזי מלך: כל הזמנה שלה יוצאת עם מדבקה אדומה."),
    ),
    Deed(12, "11:40", lambda: _label(EMMA, "Wedding", "noa")),
    Deed(12, "11:41", lambda: _assign(EMMA, "noa")),
    Deed(
        12,
        "11:45",
        lambda: _note(
            EMMA,
            "noa",
            "Tasting: lemon, almond, chocolate. The window table is kept for them.",
            on="Yes please! Next Tuesday afternoon?",
        ),
    ),
    Deed(10, "12:00", lambda: _label(YOSSI, "Regular", "amir")),
    Deed(
        8,
        "18:40",
        lambda: _note(EMMA, "amir", "The deposit is 621 shekels. Remind her on the 25th."),
    ),
    Deed(6, "11:00", lambda: _label(OMAR, "Catering", "amir")),
    Deed(6, "11:01", lambda: _assign(OMAR, "amir")),
    Deed(5, "19:00", lambda: _review_all("amir")),
    Deed(4, "19:00", lambda: _bookmark(SHIFTS)),
    Deed(3, "12:00", lambda: _review(YOSSI, who="noa")),
    Deed(2, "16:00", lambda: _review(EMMA, MAYA, who="noa")),
    Deed(2, "20:00", _read_all),
    Deed(1, "12:20", lambda: _label(EMMA, "Allergy", "noa")),
    Deed(
        1,
        "12:21",
        lambda: _note(
            EMMA,
            "noa",
            "The kitchen knows: what is for this guest is made on the separate bench.",
            on=NUTS,
        ),
    ),
    Deed(1, "12:22", lambda: _bookmark(EMMA, on=NUTS)),
    Deed(1, "12:23", lambda: _bookmark(EMMA)),
    Deed(1, "18:00", lambda: _review(DANA, who="amir")),
    Deed(0, "08:10", lambda: _label(MAYA, "Call back", "noa")),
    Deed(0, "08:11", lambda: _assign(MAYA, "noa")),
    Deed(0, "08:12", lambda: _label(OMAR, "Call back", "amir")),
    Deed(
        0,
        "08:13",
        lambda: _note(OMAR, "amir", "The invoice didn't get out here. I sent it by e-mail."),
    ),
)


def _user(name: str) -> User:
    return User.objects.get(username=name)


def _actor(name: str) -> Actor:
    return Actor("staff", name)


def _lookers() -> list[User]:
    return list(User.objects.filter(is_staff=True, is_active=True).order_by("pk"))


def _chat(of: Person | Group) -> UUID:
    return Chat.objects.get(whatsapp_chat=of.whatsapp_chat).pk


def _message(of: Person | Group, content: str) -> UUID:
    messages = Message.objects.filter(chat=_chat(of), content=content)
    return messages.latest("timestamp").pk
