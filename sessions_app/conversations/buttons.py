"""What a message says to us: the buttons of our questions, mentions of us, and commands."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from memoryproject.foundation.integrations.whatsapp.events import numbers_mentioned
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import LID_DOMAIN, PERSON_DOMAIN
from sessions_app.conversations import phrases
from sessions_app.conversations.history_queries import profile_current
from sessions_app.conversations.plain_words import BETWEEN, NAMES, Command, parse_command
from sessions_app.models import OwnAddress, Turn

# The id of a button of ours: the name of the question, the id of its turn, the key of the choice.
_BUTTON = re.compile(r"ask\.(\w{1,40})\.([0-9a-f]{32})\.(.{1,100})", re.DOTALL)
# A word before and behind a mention in its line, with no sign between.
_AMID = re.compile(r"\w[^\S\n]*$")
_AMID_AFTER = re.compile(r"[^\S\n]*\w")
_ADDRESSING = (*phrases.OPENERS, *phrases.SMALL_TALK, *phrases.COMMANDS, "closers")


# In the metadata of a message that was forwarded, and in the context of its turn.
FORWARDED = ("forwarded", "frequently_forwarded")
_SHOWN = ("contacts", "location", "order", "poll")


def is_own_text(kind: str, metadata: Mapping[str, Any]) -> bool:
    """Return whether its words are the person's: no contact card, no place, nothing forwarded."""
    return kind not in _SHOWN and metadata.keys().isdisjoint(FORWARDED)


def is_own_turn(turn: Turn) -> bool:
    """Return whether the words of the turn's message are the person's."""
    metadata = turn.message.metadata if turn.message else {}
    return is_own_text(turn.context.get("kind", "text"), {**metadata, **turn.context})


def button_id(asks: str, turn_id: UUID, key: str) -> str:
    """Return the id of a button of a question of ours."""
    return f"ask.{asks}.{turn_id.hex}.{key}"


def button_pressed(metadata: Mapping[str, Any]) -> tuple[str, UUID, str] | None:
    """Return the question, its turn and the key, where a message presses a button of ours."""
    button = metadata.get("button")
    pressed = button.get("id") if isinstance(button, dict) else None
    found = _BUTTON.fullmatch(pressed) if isinstance(pressed, str) else None
    return (found[1], UUID(found[2]), found[3]) if found else None


def addressed(text: str, *, in_group: bool) -> str:
    """Return the text; in a group without the mentions that address us, wherever they stand."""
    if not in_group or "@" not in text:
        return text
    ids = [f"{n}@{at}" for n in numbers_mentioned(text) for at in (LID_DOMAIN, PERSON_DOMAIN)]
    found = OwnAddress.objects.filter(address__in=ids).values_list("address", flat=True)
    ours = [address.partition("@")[0] for address in found]
    # Where nothing else is said, it stays.
    return _without_own_mentions(text, [profile_current().name, *ours]) or text


def _without_own_mentions(text: str, names: Sequence[str]) -> str:
    """Return the text without the mentions that address us. ``names``: ours, the shown one first.

    Amid other words of a sentence the mention is a part of it: the shown name stays there.
    """
    ours = "|".join(re.escape(name) for name in names if name)
    found = re.finditer(rf"(?<!\w)@\+?(?:{ours})(?!\w)", text, re.IGNORECASE) if ours else ()
    for mention in reversed(list(found)):
        before, after = text[: mention.start()], text[mention.end() :]
        is_amid = _AMID.search(before) and _AMID_AFTER.match(after)
        if is_amid and not (_only_addresses(before) or _only_addresses(after)):
            text = f"{before}{names[0] or mention[0]}{after}"
        else:
            text = (before.rstrip(" \t,،") + after).lstrip(BETWEEN)
    return text


def _only_addresses(text: str) -> bool:
    """Return whether words are of a greeting, of politeness, or begin a command."""
    words, place = phrases.words_of(text[: phrases.MAX_LENGTH]), 0
    message = phrases.Utterance(text, words, len(words))
    while size := phrases.size_at(message, place, _ADDRESSING):
        place += size
    return place == len(words)


def command_of(text: str, *, in_group: bool) -> Command | None:
    """Return the command in a text; in a group without the mentions that address us."""
    return parse_command(addressed(text, in_group=in_group), in_group=in_group)


def command_in_turn(turn: Turn) -> Command | None:
    """Return the command in the message of a turn."""
    text = turn.message.content if turn.message else turn.unstored_text
    metadata = turn.message.metadata if turn.message else {}
    is_own = is_own_turn(turn)
    return command_in(text, metadata, in_group=turn.chat.is_group) if is_own else None


def command_in(text: str, metadata: Mapping[str, Any], *, in_group: bool) -> Command | None:
    """Return the command in a person's own text; a press of a button of ours is one as well."""
    pressed = button_pressed(metadata)
    if pressed is None:
        return command_of(text, in_group=in_group)
    return Command(pressed[0] if pressed[0] in NAMES else "choose")
