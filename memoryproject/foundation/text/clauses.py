"""Split a message with several questions: each question is then searched for by itself.

A question next to another one, or at the end of a long message, would otherwise be a small share of
the searched words. English and Hebrew.
"""

from __future__ import annotations

import re

MAX_PARTS = 4
# Of a pasted text only the end is read: the question about it stands there.
MAX_CHARACTERS = 4_000

_ASKING = r"what|whats|what's|which|who|whos|who's|whom|whose|when|where|why|how"
_ASKING_FIRST = (
    r"do|does|did|is|are|was|were|am|can|could|will|would|shall|should|has|have|had|any|"
    r"tell|remind|show|give|send|explain|list"
)
_JOINING = r"and|or|but|also|then|so|plus"
_BEFORE_ASKING = r"until|till|since|by|in|at|on|for|from|to|with|of|about|please"
_HEBREW_ASKING = (
    r"מה|מהו|מהי|מהם|מהן|מי|מתי|איפה|היכן|למה|מדוע|איך|כיצד|כמה|איזה|איזו|אילו|האם|"
    r"לאן|לאיפה|מאין|מאיפה"
)
_HEBREW_ASKING_FIRST = r"יש|אפשר|תגיד|תגידי|תזכיר|תזכירי|ספר|ספרי|תראה|תראי|תשלח|תשלחי|תן|תני"
_HEBREW_BEFORE_ASKING = r"עד|עם|על|של|אצל|את|גם|בערך"

_ASKS = (
    rf"(?:(?:{_BEFORE_ASKING})\s+){{0,2}}(?:{_ASKING})\b"
    rf"|ו?(?:(?:{_HEBREW_BEFORE_ASKING})\s+){{0,2}}[בלמש]?(?:{_HEBREW_ASKING})\b"
)
_ASKS_FIRST = rf"(?:please\s+)?(?:{_ASKING_FIRST})\b|ו?(?:{_HEBREW_ASKING_FIRST})\b"
# A clause ends at a comma or before a conjunction, if a question follows.
_CUT = re.compile(
    rf"[,;:–—-]\s+(?=(?:(?:{_JOINING})\s+){{0,2}}(?:{_ASKS}))"
    rf"|[,;:–—-]?\s+(?=(?:(?:{_JOINING})\s+){{1,2}}(?:{_ASKS}|{_ASKS_FIRST}))"
    rf"|[,;:–—-]?\s+(?=ו(?:(?:{_HEBREW_BEFORE_ASKING})\s+)?[בלמש]?(?:{_HEBREW_ASKING})\b)"
    rf"|[,;:–—-]\s+(?=ו?(?:{_HEBREW_ASKING_FIRST})\b)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?…؟\n]+(?:[.!?…؟](?=\S)[^.!?…؟\n]+)*[.!?…؟]*")
_IS_ASKING = re.compile(
    rf"\b(?:{_ASKS})|^\W*(?:(?:{_JOINING})\s+){{0,2}}(?:{_ASKS_FIRST})", re.IGNORECASE
)
# "How are you" asks for nothing that is remembered.
_SMALL_TALK = re.compile(
    r"\bhow\s+(?:are|is|was|were|have|has)\b|\bhow['’]?s\b|\bו?איך\s+(?:היה|היו|הייתה|עבר|עברה|אתה|את|אתם)\b|"
    r"\bו?מה\s+(?:שלום|שלומך|שלומכם|נשמע|העניינים|קורה)\b(?!\s+עם)",
    re.IGNORECASE,
)
# Such a word refers to something that was named before.
_REFERS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|הוא|היא|הם|הן|אותו|אותה|אותם|אותן|"
    r"שלו|שלה|שלהם|שלהן|עליו|עליה|עליהם|בו|בה|לו|לה|להם)\b",
    re.IGNORECASE,
)


def question_parts(text: str) -> list[str]:
    """Return the questions and requests in ``text``, at most ``MAX_PARTS``, the last ones.

    Returns none if the whole text is one question. A question that refers back includes the clause
    before it.
    """
    clauses = _clauses(text[-MAX_CHARACTERS:])
    if len(clauses) < 2:
        return []
    parts = []
    before = ""
    for clause, asks in clauses:
        if asks:
            parts.append(f"{before} {clause}".strip() if _REFERS_BACK.search(clause) else clause)
        before = clause
    return parts[-MAX_PARTS:]


def _clauses(text: str) -> list[tuple[str, bool]]:
    """Return the clauses of ``text`` in order, each with whether it asks for something."""
    clauses = []
    for sentence in _SENTENCE.findall(text):
        pieces = [piece.strip() for piece in _CUT.split(sentence) if piece.strip()]
        alone = len(pieces) == 1 and sentence.rstrip().endswith(("?", "؟"))
        clauses += [(piece, _asks(piece, alone=alone)) for piece in pieces]
    return clauses


def _asks(clause: str, *, alone: bool) -> bool:
    return bool(alone or _IS_ASKING.search(clause)) and not _SMALL_TALK.search(clause)
