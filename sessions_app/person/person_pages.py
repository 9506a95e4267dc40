"""A person at a glance, on staff's pages."""

from typing import Any

from django.http import HttpRequest
from django.utils import timezone, translation
from django.utils.translation import gettext_lazy as _

from memories_app.visibility import memories_for_staff
from sessions_app.conversations.phrases import languages
from sessions_app.models import Chat
from sessions_app.person import person_card as glance
from sessions_app.presentation.links import conversation_address

TITLES = {
    glance.WHO: (_("Personal details"), "person"),
    glance.PREFERENCES: (_("Preferences"), "favorite"),
    glance.OPEN: (_("Open matters"), "pending_actions"),
    glance.PROMISES: (_("Promises"), "handshake"),
    glance.DATES: (_("Dates"), "event"),
}
TOPICS = {
    "name": _("Name"),
    "home": _("Where they live"),
    "family": _("Family"),
    "work": _("Work"),
    glance.DIET: _("Diet and health"),
    "size": _("Size"),
}


def person_context(request: HttpRequest, chat: Chat, *, most: int | None = None) -> dict[str, Any]:
    """Return ``person``: the card's sections, each with its first ``most`` lines.

    It holds what the reader may see of memories and cards; None for who may see neither.
    """
    sees_memories = request.user.has_perm("memories_app.view_memory")
    sees_cards = request.user.has_perm("cards_app.view_memorycard")
    if not (sees_memories or sees_cards):
        return {"person": None}
    reads = request.user.has_perm("sessions_app.view_message")
    return {
        "person": {
            "sections": sections_shown(chat, sees_memories, sees_cards, most=most),
            "language": language_shown(chat.fixed_language or chat.language),
            "conversation": conversation_address(chat.pk) if reads else "",
        }
    }


def sections_shown(
    chat: Chat, sees_memories: bool, sees_cards: bool, *, most: int | None = None
) -> list[dict[str, Any]]:
    """Return the sections that have lines, for the template.

    Each has its first ``most`` lines with their topics in words, "" where the section says it
    already, and how many ``more`` there are.
    """
    memories = memories_for_staff() if sees_memories else None
    card = glance.person_card(
        chat=chat, memories=memories, with_cards=sees_cards, now=timezone.now()
    )
    return [
        {
            "name": name,
            "title": TITLES[name][0],
            "icon": TITLES[name][1],
            "lines": [(line, TOPICS.get(line.topic, "")) for line in lines[:most]],
            "more": len(lines[most:]) if most else 0,
        }
        for name, lines in card.items()
        if lines
    ]


def language_shown(code: str) -> str:
    """Return the name of a language for staff, or its code where it is none of ours."""
    info = translation.get_language_info(code) if code in languages() else {}
    return str(info.get("name_translated", code))
