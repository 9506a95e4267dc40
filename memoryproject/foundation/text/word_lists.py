"""Words of the languages by how informative they are about a text's topic: ``words/*.json``.

``function``: grammar, question words, greetings and thanks, which occur in any text and name no
topic. ``vague``: verbs of knowing and saying, and time words, which ask for known facts, but name
no topic. ``common``: words of daily life and trade; a word in no list is rare, so likely a name or
a topic. ``topic_markers``: the question is about the words after one of these.

Languages other than English and Hebrew have only the first. A word of theirs that names something
in English ("die", "AI", "Uber") is in no list. An accent is ignored, so that "für" can't be told
from "fur".
"""

import json
from pathlib import Path
from typing import NamedTuple

from memoryproject.foundation.text.characters import fold

_FOLDER = Path(__file__).with_name("words")


class Words(NamedTuple):
    """The folded words of one language."""

    function: frozenset[str]
    vague: frozenset[str] = frozenset()
    common: frozenset[str] = frozenset()
    topic_markers: frozenset[str] = frozenset()


def _words(path: Path) -> Words:
    lists = json.loads(path.read_text(encoding="utf-8"))
    return Words(**{name: frozenset(fold(" ".join(of)).split()) for name, of in lists.items()})


_BY_LANGUAGE = {path.stem: _words(path) for path in _FOLDER.glob("*.json")}
ENGLISH = _BY_LANGUAGE.pop("en")
HEBREW = _BY_LANGUAGE.pop("he")
# The grammar of all other languages.
OTHERS = frozenset[str]().union(*(words.function for words in _BY_LANGUAGE.values()))
