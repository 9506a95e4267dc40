"""Questions with choices: what an answer offers to press or to type, and how it is sent."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memoryproject.foundation.integrations.whatsapp.base import (
    MAX_CHOICES,
    Choice,
    ChoiceProvider,
    Recipient,
    SendError,
    SendResult,
    WhatsAppProvider,
)
from sessions_app.conversations.buttons import button_id
from sessions_app.conversations.phrases import text_for
from sessions_app.conversations.plain_words import bare_words
from sessions_app.models import OutboundPart, Turn

# The key of the context of a turn whose answer asks, and of the one that takes the choice.
QUESTION = "question"
CHOSEN = "chosen"
# Meta's codes for a message that it doesn't take in this form.
_NOT_TAKEN = (100, 131008, 131009, 131051)
_AROUND = re.compile(r"^\W+|\W+$")
_ACCENTS = re.compile("[\u0300-\u036f]")


@dataclass(frozen=True)
class Question:
    """The choices of a question, in their order: their titles by their keys.

    ``asks`` names what handles the choice. ``is_listed``: the text lists them by numbers that are
    the keys.
    """

    asks: str
    options: Mapping[str, str]
    is_listed: bool = False

    def as_context(self, part: int) -> dict[str, Any]:
        """Return what a turn's context holds of it. ``part``: the number of the part with it."""
        options = [[key, title] for key, title in self.options.items()]
        listed = self.is_listed
        return {QUESTION: {"asks": self.asks, "options": options, "listed": listed, "part": part}}

    def text_with_numbers(self, text: str) -> str:
        """Return the question for a provider without buttons: people type a number."""
        if self.is_listed:
            return text
        lines = (
            f"{number}. {title}" for number, title in enumerate(self.options.values(), start=1)
        )
        return "\n".join([text, "", *lines])

    def key_typed(self, text: str, numbers: Sequence[int] | None) -> str | None:
        """Return the key of the choice that a text names by its title or its number."""
        plain, bare = _plain(text), bare_words(text)
        for key, title in self.options.items():
            # "Yes please" and "no, thanks" are answers, too.
            if plain and (plain == _plain(title) or (bare and bare == bare_words(title))):
                return key
        if numbers is None or len(numbers) != 1:
            return None
        if self.is_listed:
            return str(numbers[0]) if str(numbers[0]) in self.options else None
        keys = list(self.options)
        return keys[numbers[0] - 1] if 1 <= numbers[0] <= len(keys) else None


def _plain(text: str) -> str:
    """Return a text without what stands around its words: signs, emoji, marks of direction.

    "si" is "Sí": accents are left out, too.
    """
    letters = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return _AROUND.sub("", letters).casefold()


def question_of(turn: Turn) -> Question | None:
    """Return the question that a turn's answer asks."""
    stored = turn.context.get(QUESTION)
    if not stored:
        return None
    return Question(str(stored["asks"]), dict(stored["options"]), bool(stored["listed"]))


def has_buttons(question: Question, provider: WhatsAppProvider, *, is_group: bool) -> bool:
    """Return whether the provider shows the choices. Meta takes no buttons in groups."""
    fits = 0 < len(question.options) <= MAX_CHOICES
    return fits and not is_group and isinstance(provider, ChoiceProvider)


def question_send(
    provider: WhatsAppProvider, turn: Turn, part: OutboundPart, to: Recipient
) -> SendResult | None:
    """Send a part with the choices of its turn; None for a part that has none. Raises SendError.

    A part whose text was erased has none. Where the provider takes no buttons, numbers are sent.
    """
    question = question_of(turn)
    if question is None or part.number != turn.context[QUESTION]["part"] or not part.content:
        return None
    is_group = to.group_id is not None
    if not isinstance(provider, ChoiceProvider):
        return None
    if not has_buttons(question, provider, is_group=is_group):
        return None
    choices = [
        Choice(button_id(question.asks, turn.turn_id, key), title)
        for key, title in question.options.items()
    ]
    try:
        return provider.send_choices(
            to=to,
            text=part.content,
            choices=choices,
            opener=text_for("choose", turn.chat.language),
            callback_id=str(part.id),
        )
    except SendError as error:
        if error.code not in _NOT_TAKEN or not error.permanent:
            raise
    text = question.text_with_numbers(part.content)
    return provider.send_text(to=to, text=text, callback_id=str(part.id))
