"""Questions with choices: what an answer offers to press or to type, and how it is sent."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from memoryproject.foundation.integrations.whatsapp import base as whatsapp
from sessions_app.conversations.buttons import button_id, button_pressed
from sessions_app.conversations.phrases import MAX_LENGTH, languages, phrases_at, text_for, words_of
from sessions_app.conversations.plain_words import asks_in_words, bare_words, denies
from sessions_app.models import Chat, OutboundPart, Turn, TurnState
from sessions_app.models.messages import SURVEY

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


# The survey: whether a session helped.

HELPED = "helped"
ANSWERED_WITHIN = timedelta(hours=24)
# More words say something else.
MAX_WORDS = 6


def survey_question(language: str) -> tuple[str, Question]:
    """Return the text of the survey, and what it offers."""
    options = {key: text_for(key, language) for key in ("yes", "no")}
    return text_for(SURVEY, language), Question(HELPED, options)


def survey_answer(
    chat: Chat, text: str, metadata: Mapping[str, Any], *, typed: bool
) -> tuple[str, bool] | None:
    """Return the session that a message says of whether it helped, and what it says.

    A press of a button counts; words count (``typed``) where they say nothing else, as the first
    ones after the question.
    """
    pressed = button_pressed(metadata)
    turns = Turn.objects.filter(chat=chat)
    if pressed is not None:
        survey = turns.filter(turn_id=pressed[1]).first() if pressed[0] == HELPED else None
    elif typed and not chat.is_group and len(words_of(text[:MAX_LENGTH])) <= MAX_WORDS:
        survey = turns.order_by("-pk").first()
    else:
        return None
    question = question_of(survey) if survey is not None and SURVEY in survey.context else None
    if survey is None or question is None:
        return None
    if pressed is None:
        since = timezone.now() - ANSWERED_WITHIN
        is_open = survey.state == TurnState.SENT and survey.created_at > since
        key = _key_said(question, text, chat.language) if is_open else None
        key = None if CHOSEN in survey.context else key
    else:
        key = pressed[2]
    if key not in question.options:
        return None
    # What is typed after an answer is a message as any other.
    survey.context[CHOSEN] = key
    survey.save(update_fields=["context"])
    return str(survey.context[SURVEY]), key == "yes"


def _key_said(question: Question, text: str, language: str) -> str | None:
    """Return "yes" or "no" where all words say it: "no", "2", "yes, very much", "it did"."""
    if asks_in_words(text):
        return None
    number = text.strip(" .)")
    key = question.key_typed(text, [int(number)] if number.isdecimal() else None)
    words = [word.text for word in words_of(text)]
    if key == "no" and any(phrases_at(words[n:], ("thanks",)) for n in range(len(words))):
        # "No, thanks" wants no question.
        return None
    if key is not None or denies(text):
        return key or "no"
    yes, no, about = (
        {word.text for word in words_of(each)}
        for each in (*question.options.values(), text_for("survey_words", language))
    )
    spoken = languages().get(language, languages()["en"])
    no |= set(spoken["negations"])
    is_yes, is_no = bool(yes & {*words}), bool(no & {*words})
    if not words or not {*words} <= yes | no | about or (is_yes and is_no):
        return None
    return "no" if is_no else "yes"


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


def has_buttons(question: Question, provider: whatsapp.WhatsAppProvider, *, is_group: bool) -> bool:
    """Return whether the provider shows the choices. Meta takes no buttons in groups."""
    fits = 0 < len(question.options) <= whatsapp.MAX_CHOICES
    return fits and not is_group and isinstance(provider, whatsapp.ChoiceProvider)


def question_send(
    provider: whatsapp.WhatsAppProvider, turn: Turn, part: OutboundPart, to: whatsapp.Recipient
) -> whatsapp.SendResult | None:
    """Send a part with the choices of its turn; None for a part that has none. Raises SendError.

    A part whose text was erased has none. Where the provider takes no buttons, numbers are sent.
    """
    question = question_of(turn)
    if question is None or part.number != turn.context[QUESTION]["part"] or not part.content:
        return None
    is_group = to.group_id is not None
    if not isinstance(provider, whatsapp.ChoiceProvider):
        return None
    if not has_buttons(question, provider, is_group=is_group):
        return None
    choices = [
        whatsapp.Choice(button_id(question.asks, turn.turn_id, key), title)
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
    except whatsapp.SendError as error:
        if error.code not in _NOT_TAKEN or not error.permanent:
            raise
    text = question.text_with_numbers(part.content)
    return provider.send_text(to=to, text=text, callback_id=str(part.id))
