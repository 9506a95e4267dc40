"""What words and signs say about an answer. Pure.

The words of each language are in ``conversations/languages``.
"""

from collections.abc import Sequence

from cards_app.rules.words import is_question, split_sentences
from sessions_app.conversations.phrases import BOOKED, MAX_LENGTH, languages, phrases_at, words_of
from sessions_app.conversations.plain_words import ACK_SIGNS, IGNORED_SIGNS, asks_in_words, denies

GOOD_SIGNS = ACK_SIGNS + "😍🥰😘😁🤗🥳🔥⭐🌟♥💕💖💗💙💚💛🧡💜🤍🖤🤎🤩☺"
BAD_SIGNS = "👎😡🤬😠😤😒🙄😞😢😭💔🤮🖕💩😕🙁☹"


def approval_of(text: str) -> bool | None:
    """Return whether signs without words like or dislike something; None: they say neither."""
    signs = {sign for sign in text if not sign.isspace() and sign not in IGNORED_SIGNS}
    return signs.isdisjoint(BAD_SIGNS) if signs and signs <= {*GOOD_SIGNS, *BAD_SIGNS} else None


def gives_thanks(text: str) -> bool:
    """Return whether the message thanks: not as part of a complaint, a refusal or a question."""
    is_meant = set(text).isdisjoint(BAD_SIGNS) and not (asks_in_words(text) or denies(text))
    return is_meant and _says(text, "thanks", ("thanks_not", "negations"))


def confirms_booking(text: str) -> bool:
    """Return whether one of its sentences says that something was booked for the person."""
    sentences = (sentence.text for sentence in split_sentences(text))
    return any(not is_question(s) and _says(s, BOOKED, ("booked_not",)) for s in sentences)


def _says(text: str, kind: str, cancelled_by: Sequence[str]) -> bool:
    """Return whether a phrase of the kind is in the text, and no word of its language cancels it.

    "No, thanks" and "no thanks" say the opposite.
    """
    texts = [word.text for word in words_of(text[:MAX_LENGTH])]
    for place in range(len(texts)):
        # "Thx" is said in several languages: the words of any of them may cancel it.
        spoken = {phrase.language for phrase in phrases_at(texts[place:], (kind,))}
        if spoken and not any(_cancels(texts, place, each, cancelled_by) for each in spoken):
            return True
    return False


def _cancels(texts: Sequence[str], place: int, code: str, cancelled_by: Sequence[str]) -> bool:
    language = languages()[code]
    cancelling = frozenset[str]().union(*(language[name] for name in cancelled_by))
    no = [word.text for word in words_of(language["texts"]["no"])]
    return not cancelling.isdisjoint(texts) or texts[max(place - len(no), 0) : place] == no
