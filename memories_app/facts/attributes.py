"""Attributes that have one value at a time, however and in whatever language they are said.

The patterns read texts whose small words are English, see ``pivot``. A pattern reads a whole text,
so that "my sister moved to Haifa", "I used to live in Haifa" and "our second address is …" match
none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memories_app.facts.fact_parser import tokens_of
from memories_app.facts.validity import MAX_STATEMENT, names_day
from memoryproject.foundation.text.characters import fold

# A value that is said to be new takes the older one's place also where both could be true.
RENEWING = re.compile(
    r"(?<!\w)(?:now|new|sorry|actually|instead|anymore|no longer|moved|changed|started|"
    r"from now on|עכשיו|כרגע|מעכשיו|חדש|חדשה|החדש|החדשה)(?!\w)"
)
_FILLERS = re.compile(
    r"(?<!\w)(?:now|new|sorry|actually|instead|currently|just|have|has|recently|from now on|"
    r"as you know|already|correction|the correct)(?!\w)[,:]?|(?<=\w)'ve(?!\w)"
)
_TIME = (
    r"(?:at |around )?(?P<value>\d{1,2}(?:[:.h]\d{2})?h?(?: ?[ap]\.?m\.?)?)(?: uhr| часов| год)?"
)
_AMOUNT = r"(?P<value>[₪$€£]? ?\d[\d.,]*(?: ?[^\W\d]+\.?| ?[₪$€£%])?)"
_PLACE = r"(?:the city of )?(?P<value>[^,.;\d]{2,40}?)(?:,[^;]{2,40})?"
_ROLE = (
    r"(?:manager|ceo|cfo|cto|director|boss|owner|landlord|accountant|secretary|chef|gerente|"
    r"directora?)"
)
_PERSON = r"(?!(?:i|we|you|it|they|he|she|who|everybody|everyone|people)\b)[^\d,;:.!?]{2,40}?"
_HEBREW_ROLE = r"ה(?:מנהל|מנכל|בוס|רואה החשבונ|מזכיר|שפ)ת?(?: של [^,;:]{2,30})?"
_MOVED = (
    r"(?:(?:has been|was|is|got) )?"
    r"(?:moved|changed|rescheduled|postponed|brought forward|shifted) to"
)
_SHOP = r"(?:shop|store|office|salon|studio|clinic)"
_WE_MOVED = rf"(?:we|our {_SHOP}) (?:moved|relocated) to"
_STREET = r"(?P<value>[^\d]{2,40} \d{1,4}\b(?![:%₪$€]).{0,40})"
_WITH_NUMBER = r"(?P<value>.{0,60}?\d.{0,60})"
_MY_PHONE = r"my (?:phone|mobile|cell|telephone|phone number|number|mobile number|cell number)"
_OUR_PHONE = r"our (?:phone|telephone|phone number|number)"
_PHONE = r"(?:is|changed to)(?: number)? (?P<value>[+\d][\d ()-]{5,20})"
_WENT = r"(?:is|went up to|went down to|changed to|rose to|dropped to|was raised to)"
_NAME = r"(?P<value>[^\d,;:]{2,40}?)"
_WORK = r"(?:work|works|started working|started to work) (?:at|for)"
_OF_WHOM = r"(?: (?:of|at) [^,;:]{2,30}?)?"
# The name of the attribute, the pattern, and whether it can have one value only. ``of`` belongs to
# the name.
_PATTERNS: tuple[tuple[str, str, bool], ...] = (
    ("i live", rf"i (?:live|am living|reside) in {_PLACE}", False),
    ("i live", rf"(?:(?:i|я|انا) )?(?:moved|relocated) to {_PLACE}", False),
    ("lives", rf"(?P<of>{_PERSON}) (?:lives|is living|resides) in {_PLACE}", False),
    ("lives", rf"(?P<of>{_PERSON}) (?:moved|relocated) to {_PLACE}", False),
    ("i work", rf"i {_WORK} {_PLACE}", False),
    ("works", rf"(?P<of>{_PERSON}) {_WORK} {_PLACE}", False),
    ("we are at", rf"our (?:address|{_SHOP}) is (?:at |in |on )?{_WITH_NUMBER}", True),
    ("we are at", rf"we are (?:located )?(?:at|on) {_STREET}", True),
    ("we are at", rf"{_WE_MOVED} {_STREET}", True),
    ("we are at", rf"{_WE_MOVED} (?P<value>\d{{1,4}} [^\d]{{2,40}})", True),
    ("we close", rf"(?:we|the shop|the store) closes? {_TIME}", True),
    ("we open", rf"(?:we|the shop|the store) opens? {_TIME}", True),
    ("my phone", rf"{_MY_PHONE} {_PHONE}", True),
    ("our phone", rf"{_OUR_PHONE} {_PHONE}", True),
    ("my email", r"my e-?mail(?: address)? (?:is|changed to) (?P<value>\S+@\S+)", True),
    ("when", rf"(?P<of>[^\d,;:]{{2,50}}?) (?:is|{_MOVED}|(?=on |ביומ )) ?(?P<value>.{{2,40}})",
     False),
    ("price", rf"(?P<of>[^\d,;:]{{2,60}}?) (?:costs?|עולה|עולים|עולות) (?:only )?{_AMOUNT}", True),
    ("price", rf"the price (?:of|for) (?P<of>[^\d,;:]{{2,60}}?) {_WENT}?(?: to)? ?{_AMOUNT}", True),
    ("place", rf"(?:my|our) (?P<of>[^\d,;:]{{2,30}}?) (?:is (?:located )?in|{_MOVED}) {_PLACE}",
     False),
    ("role", rf"{_NAME} (?:הוא|היא) (?P<of>{_HEBREW_ROLE})", False),
    ("role", rf"(?P<of>{_HEBREW_ROLE}) (?:הוא|היא) {_NAME}", False),
    ("role", rf"{_NAME} (?:is|became) (?:our|the) (?P<of>{_ROLE}{_OF_WHOM})", False),
    ("role", rf"(?:our|the) (?P<of>{_ROLE}{_OF_WHOM}) is {_NAME}", False),
)  # fmt: skip
_COMPILED = [(name, re.compile(pattern), one) for name, pattern, one in _PATTERNS]
# A place is named; "a big house" and "the night shift" are none.
_NO_PLACE = re.compile(fold(
    r"(?:a|an|the|my|your|our|his|her|another|one|this|un|una|um|uma|une|ein|eine|einem|einer|el|la|"
    r"le|il|der|die|das|dem|den|ה?בית|ה?דירה|casa|apartamento|piso|доме|квартире|будинку|квартирі|"
    r"بيت|شقة|house|apartment|flat|maison|haus|wohnung)(?!\w)|.*(?<!\w)(?:plan|premium|team|shift|"
    r"bank|iphone|android|windows|mac|role|department|class|group|app|version|keto|vegan|online|"
    r"gmail|outlook|whatsapp|telegram|netflix|spotify|cash|credit|invoices|time|work|job|"
    r"אייפון|אנדרואיד|סמסונג|גימייל|משמרת|קבוצה|תוכנית|חברת?|מחלקה|תפקיד|לקוח|עבודה|לעבוד|בנק|"
    r"טבעונות|דיאטה|אוטומט|חשמלי|חשמלית|гугл|айфон|андроид|банк|отдел|тариф)(?!\w)"
))  # fmt: skip
_ARTICLE = re.compile(
    r"^(?:a|an|the|el|la|los|las|un|una|um|uma|o|os|as|le|les|une|l'|der|die|das|den|dem|ein|eine|"
    r"einen|il|lo|gli|i)\s+|^(?:l'|ה(?=[א-ת]{3}))"
)
_WORD = re.compile(r"\w+(?:[.:@'-]\w+)*")


@dataclass(frozen=True)
class Attribute:
    """An attribute with its value. ``sure``: two values can't be true at the same time."""

    name: str
    values: tuple[str, ...]
    sure: bool


def is_renewing(pivot_text: str) -> bool:
    """Return whether a text says that its value is a new one."""
    return RENEWING.search(pivot_text) is not None


def attributes_of(pivot_text: str) -> Iterator[Attribute]:
    """Yield the attributes that a text states, of which there are seldom several."""
    if len(pivot_text) > MAX_STATEMENT:
        return
    text = " ".join(_FILLERS.sub(" ", pivot_text).split()).strip(" .,!;")
    for name, pattern, one in _COMPILED:
        found = pattern.fullmatch(text)
        if found is None or (
            name in ("i live", "lives", "i work", "works", "place")
            and _NO_PLACE.match(found["value"])
        ):
            continue
        if name == "when" and not names_day(found["value"]):
            continue
        of = found.groupdict().get("of") or ""
        if name == "role":
            # A woman's role is the same one.
            of = re.sub(r"(?<=[א-ת]{3})ת(?!\w)", "", of)
        of = " ".join(_WORD.findall(_ARTICLE.sub("", of.strip())))
        values = tuple(token.text for token in tokens_of(found["value"].rstrip("h")))
        if values:
            yield Attribute(f"{name} {of}".strip(), values, one)
