"""Add what is known of the person to the prompts of their turns (PERSON_IN_PROMPT)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils import timezone

from memories_app.visibility import memories_visible
from memoryproject.foundation.text.characters import estimate_tokens
from sessions_app.cards.card_recall import CARDS
from sessions_app.models import Chat, Turn
from sessions_app.models.chats import GODFATHER, reading_role
from sessions_app.person import person_card as glance
from sessions_app.recall.facade import name_in_label

# The name of a memory's line in the replay record; a card's line is there as its card.
PERSON = "person"
MAX_TOKENS = 250
# A longer line leaves too little room for the others.
MAX_LINE_TOKENS = 80
HEADING = "What is known of this person:"
HEADINGS = {
    glance.WHO: "Who",
    glance.PREFERENCES: "Preferences",
    glance.OPEN: "Open matters",
    glance.PROMISES: "Promises",
    glance.DATES: "Dates",
}
# What is first chosen where not all fits.
IMPORTANCE = (glance.PROMISES, glance.PREFERENCES, glance.DATES, glance.WHO, glance.OPEN)


@dataclass(frozen=True)
class PersonHit:
    """A person's card in at most ``MAX_TOKENS``, and its lines."""

    content: str
    lines: Sequence[glance.PersonLine]

    def records(self, *, in_prompt: bool) -> list[dict[str, Any]]:
        """Return the entries for the replay record: forgetting finds each line by its id."""
        return [_record(line, in_prompt) for line in self.lines]


def person_recall(*, turn: Turn, recalled: Collection[UUID]) -> PersonHit | None:
    """Return what the turn's chat may know of its person; None if it is nothing, and in groups.

    ``recalled``: memories that the prompt holds anyway.
    """
    if turn.chat.is_group:
        # What one of them says of himself isn't so of the others.
        return None
    role = reading_role(turn.user_role, turn.context)
    now = timezone.now()
    visible = memories_visible(
        is_owner=role == GODFATHER, is_staff=False, chat_id=turn.chat_id, now=now
    )
    session_id = turn.session.pk if turn.session else None
    card = glance.person_card(
        chat=turn.chat, memories=visible, with_cards=True, now=now, without=session_id
    )
    taken: dict[object, glance.PersonLine] = {}
    for section in IMPORTANCE:
        for line in card[section]:
            key = line.memory_id or line.text
            if key in taken or key in recalled or estimate_tokens(line.text) > MAX_LINE_TOKENS:
                continue
            longer = {**taken, key: line}
            if estimate_tokens(_text(turn.chat, list(longer.values()))) <= MAX_TOKENS:
                taken = longer
    if not taken:
        return None
    lines = list(taken.values())
    return PersonHit(_text(turn.chat, lines), lines)


def _text(chat: Chat, lines: Sequence[glance.PersonLine]) -> str:
    name = f"Name: {name_in_label(chat.client_name)}"
    parts = [HEADING, *([name] if chat.client_name else ())]
    for section, heading in HEADINGS.items():
        own = [_line(line) for line in lines if line.section == section]
        parts += [f"{heading}:", *own] if own else []
    return "\n".join(parts)


def _line(line: glance.PersonLine) -> str:
    is_period = line.until is not None and line.until != line.day
    word = "due" if line.section == glance.PROMISES else "from" if is_period else "on"
    notes = [f"{word} {line.day}"] if line.day else []
    notes += [f"until {line.until}"] if is_period else []
    notes += [glance.OVERDUE] if line.state == glance.OVERDUE else []
    return f"- {line.text} ({', '.join(notes)})" if notes else f"- {line.text}"


def _record(line: glance.PersonLine, in_prompt: bool) -> dict[str, Any]:
    key = str(line.memory_id or line.session_id)
    of_card = {} if line.memory_id else {"session_id": key}
    return {
        "source": PERSON if line.memory_id else CARDS,
        "id": key,
        **of_card,
        "section": line.section,
        "content": line.text,
        "score": None,
        "similarity": None,
        "created_at": line.said_at.isoformat(),
        "in_prompt": in_prompt,
    }
