"""Tell by their words what memories are about, in ten languages. Pure.

``topics.json`` has the words of each topic. Of a word with five letters or more its inflections
count, too.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from memoryproject.foundation.text.characters import fold

WHO, PREFERENCES, OPEN, PROMISES, DATES = "who", "preferences", "open", "promises", "dates"
# In the order in which they are shown.
SECTIONS = (WHO, PREFERENCES, OPEN, PROMISES, DATES)
DIET, TASTE, OTHER = "diet", "taste", "other"
BIRTHDAY, APPOINTMENT = "birthday", "appointment"
# The topics of a section, in the order in which they are shown.
TOPICS = {
    WHO: ("name", "home", "family", "work", OTHER),
    PREFERENCES: (DIET, TASTE, "size", "habit"),
}
SECTION_OF = {topic: section for section, topics in TOPICS.items() for topic in topics}
# So many letters say what a word is about, whatever follows.
STEM = 5
# Written together with the next word: "and", "the", "in", "to", "that", "from", "as".
_HEBREW, _ARABIC = "והבלשמכ", ("ال", "وال", "بال", "لل", "و", "ب", "ل")
_WORD = re.compile(r"[^\W\d_]+")


def _listed() -> dict[str, str]:
    lists = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return {
        fold(word): topic
        for topic, lines in lists.items()
        for line in lines
        for word in line.split()
    }


_TOPIC_OF = _listed()
_BEGINNINGS = {word[:STEM] for word in _TOPIC_OF if len(word) >= STEM}


def topics_of(text: str) -> list[str]:
    """Return the topics of a text, each once: what concerns health first, then as they are said."""
    found = dict.fromkeys(filter(None, map(_topic, _WORD.findall(fold(text)))))
    return sorted(found, key=lambda topic: topic != DIET)


def _topic(word: str) -> str:
    """Return what a word is about, "" if it doesn't tell."""
    for form in _forms(word):
        if form in _TOPIC_OF:
            return _TOPIC_OF[form]
        # Few words have the beginning of a stem.
        for length in range(STEM, len(form)) if form[:STEM] in _BEGINNINGS else ():
            if form[:length] in _TOPIC_OF:
                return _TOPIC_OF[form[:length]]
    return ""


def _forms(word: str) -> Iterator[str]:
    """Yield the word, and where other words are written together with it, without them."""
    yield word
    if "א" <= word[0] <= "ת" and word[0] in _HEBREW and len(word) > 3:
        yield word[1:]
    elif "\u0600" <= word[0] <= "\u06ff":
        yield from (
            word[len(each) :]
            for each in _ARABIC
            if word.startswith(each) and len(word) > len(each) + 2
        )
