"""The people who write to the café, and their messages.

All of them are invented; the numbers are from the ranges reserved for fiction.
"""

from __future__ import annotations

from dataclasses import dataclass, field

OWNER_PHONE = "15550199999"


@dataclass(frozen=True)
class Person:
    """A WhatsApp user; ``provider`` is cloud or green."""

    phone: str
    name: str
    provider: str = "cloud"

    @property
    def whatsapp_chat(self) -> str:
        return f"{self.phone}@c.us"


@dataclass(frozen=True)
class Group:
    """Several people in one chat, through Green API."""

    group_id: str
    name: str

    @property
    def whatsapp_chat(self) -> str:
        return f"{self.group_id}@g.us"


OWNER = Person(OWNER_PHONE, "Neta Shaked")
DANA = Person("972550100101", "דנה לוי")
EMMA = Person("15550100102", "Emma Clarke")
YOSSI = Person("972550100103", "יוסי כהן", "green")
OMAR = Person("15550100104", "Omar Haddad", "green")
MAYA = Person("972550100105", "מאיה פרידמן")
TOM = Person("15550100106", "Tom Becker")
ERASED = Person("15550100107", "Iris Novak")
LATE = Person("972550100108", "רון אלמוג")
LIOR = Person("972550100109", "ליאור אבן", "green")
SARA = Person("15550100110", "Sara Nasser", "green")
NETA = Person(OWNER_PHONE, OWNER.name, "green")
SHIFTS = Group("120363040000000001", "Café Shaked: shifts")


@dataclass(frozen=True)
class Utterance:
    """One message and the assistant's answer.

    It is sent ``days`` days ago at ``time``. ``status``: the delivery status of the answer.
    ``then``: a later change of the message: edited:<text>, revoked, or reacted:<emoji>. ``fails``:
    failed, unconfirmed, missed or waiting. ``file``: one of the demo's files. In a ``group``, a
    message without an answer wasn't addressed to the assistant.
    """

    person: Person
    days: int
    time: str
    text: str
    answer: str = ""
    kind: str = "text"
    status: str = "read"
    then: str = ""
    fails: str = ""
    file: str = ""
    group: Group | None = None


@dataclass(frozen=True)
class Fact:
    """A memory from staff, the owner or a document."""

    content: str
    visibility: str = "public"
    category: str = ""
    tags: tuple[str, ...] = ()
    pinned: bool = False
    days: int = 20
    corrected: str = ""
    of: Person | None = None
    confidence: float | None = None
    proposed: bool = False
    metadata: dict[str, str] = field(default_factory=dict)


FACTS = (
    Fact(
        "We are open Sunday to Thursday from 7:30 to 19:00 and Friday until 14:00.",
        category="business",
        tags=("opening hours",),
        pinned=True,
        days=29,
        corrected="We are open Sunday to Thursday from 7:00 to 19:00 and Friday until 14:30.",
    ),
    Fact(
        "אנחנו פתוחים בימים ראשון עד חמישי 7:00–19:00 ובשישי עד 14:30.",
        category="business",
        tags=("opening hours",),
        pinned=True,
        days=29,
    ),
    Fact(
        "A chocolate cake for ten people costs 220 shekels and is ordered two days ahead.",
        category="prices",
        tags=("cakes",),
        days=26,
        corrected="A chocolate cake for ten people costs 240 shekels and is ordered two days "
        "ahead.",
    ),
    Fact(
        "עוגת שוקולד לעשרה אנשים עולה 240 ש״ח, בהזמנה יומיים מראש.",
        category="prices",
        tags=("cakes",),
        days=25,
    ),
    Fact(
        "Delivery within Haifa costs 35 shekels, free above 300 shekels.",
        category="prices",
        tags=("delivery",),
        days=24,
    ),
    Fact(
        "Delivery in Haifa is 35 shekels and free for orders above 300 shekels.",
        category="prices",
        tags=("delivery",),
        days=9,
    ),
    Fact(
        "The café has no gluten-free kitchen: the almond cake is made without flour, but traces "
        "are possible.",
        category="kitchen",
        tags=("allergies",),
        days=22,
    ),
    Fact(
        "The flour supplier delivers on Mondays and wants orders until Thursday noon.",
        visibility="owner",
        category="suppliers",
        tags=("flour",),
        days=21,
    ),
    Fact(
        "The rent goes up by 4 percent in January.", visibility="owner", category="finance", days=16
    ),
    Fact(
        "The oven is serviced by Galil Ovens each April.",
        visibility="owner",
        category="kitchen",
        days=14,
    ),
)
OF_PEOPLE = (
    Fact("Dana is allergic to walnuts.", "chat", "people", ("allergies",), True, 17, of=DANA),
    Fact(
        "Emma's wedding is on 18 June at the Carmel Forest, with 90 guests.",
        "chat",
        "events",
        ("wedding",),
        of=EMMA,
        days=12,
    ),
    Fact("Emma prefers lemon and raspberry to chocolate.", "chat", "people", of=EMMA, days=12),
    Fact("יוסי מזמין כל יום חמישי שתי חלות ובורקס.", "chat", "orders", of=YOSSI, days=10),
)
PROPOSED = (
    Fact(
        "Omar's office has moved to Hanamal Street 12.",
        "chat",
        "contacts",
        of=OMAR,
        days=3,
        confidence=0.58,
        proposed=True,
    ),
    Fact(
        "דנה מעדיפה איסוף עצמי אחרי חמש.",
        "chat",
        "people",
        of=DANA,
        days=2,
        confidence=0.52,
        proposed=True,
    ),
    Fact(
        "Emma may want a vegan table for eight guests.",
        "chat",
        "events",
        of=EMMA,
        days=1,
        confidence=0.47,
        proposed=True,
    ),
)
