"""Recognise names in Hebrew, which has no capitals.

A word is a name for one of these reasons: it follows a title or the like, it is in quotation
marks, it is an acronym with gershayim (צה״ל), or it is on a list of unambiguous names. A
recognised name counts everywhere, also with prefix letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from cards_app.rules.words import folded, without_points
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.hebrew import without_prefixes
from memoryproject.foundation.text.tokenizer import Kind, Token, kind_of

# Hebrew words that mark names: titles, places, known names, abbreviations.


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Patterns. A name follows them; each may have a prefix.
TITLES = (
    "מר",
    "גב['׳]?",
    "גברת",
    "אדון",
    "ד[\"״]?ר['׳]?",
    "דוקטור",
    "פרופ['׳]?",
    "פרופסור",
    'עו["״]ד',
    "עור(?:ך|כת) ה?דין",
    'רו["״]ח',
    "הרב",
    "הרבנית",
)
CALLED = ("קוראים ל(?:י|ו|ה|ך)", "ש?שמי", "ש?שמו", "בשם")
PLACES = (
    "רחוב",
    "רח['׳]",
    "שדרות",
    "שד['׳]",
    "שכונת",
    "קיבוץ",
    "מושב",
    "העיר",
    "חברת",
    "בנק",
    "מלון",
    "מסעדת",
)
# Words for the trade of a firm or the kind of a place, which are not its name.
NO_NAMES = _words(
    "ביטוח תקשורת ניקיון אבטחה הייטק חשמל השקעות תעופה הובלות הסעות שליחויות אחזקות בנייה "
    "בניה דירוג סלולר גדולה ותיקה מוכרת הראשי הראשית שקט שקטה הזאת הזה הזו"
)

PEOPLE = _words(
    "דנה יוסי משה אברהם יעקב רחל מיכל נועה יונתן דניאל מיכאל איתן עידו רועי יעל מאיה לירון גלית "
    "אורית רונית סיגל ענת אסף אביגיל בנימין גדעון יצחק שמעון שלמה אליהו רפאל שמואל מרדכי פנחס "
    "אהרון אילנה לאה נעמי רבקה שושנה אסתר יהודית ליאורה נעמה עינת הדס אפרת יואב ירון דורון רמי "
    "מוטי קובי איציק יהודה מנחם יהושע אלכס מוחמד אחמד מחמוד פאטמה נטליה אולגה סבטלנה דמיטרי "
    "ולדימיר סרגיי יבגני מרינה כהן לוי מזרחי פרץ ביטון דהן פרידמן גולדברג שפירא רוזנברג אוחנה "
    "אזולאי אשכנזי ברקוביץ גולדשטיין פלדמן"
)
TOWNS = _words(
    "ישראל ירושלים חיפה אשדוד אשקלון נתניה הרצליה רעננה חולון רמלה עכו נהריה טבריה צפת אילת "
    "דימונה חדרה עפולה כרמיאל גבעתיים נצרת קיסריה זכרון לונדון פריז ברלין מוסקבה רומא אמסטרדם "
    "ברצלונה מדריד"
)
TOWNS_OF_TWO_WORDS = frozenset(
    {
        ("תל", "אביב"),
        ("באר", "שבע"),
        ("פתח", "תקווה"),
        ("ראשון", "לציון"),
        ("רמת", "גן"),
        ("רמת", "השרון"),
        ("בני", "ברק"),
        ("בת", "ים"),
        ("כפר", "סבא"),
        ("בית", "שמש"),
        ("ראש", "העין"),
        ("הוד", "השרון"),
        ("קריית", "גת"),
        ("קריית", "אונו"),
        ("קריית", "שמונה"),
        ("ניו", "יורק"),
    }
)

# Words with gershayim that are not names, listed without the mark.
ABBREVIATIONS = _words(
    "שח דר עוד רוח בעמ עי עפ עג קמ סמ ממ מר קג סהכ חול יור מנכל סמנכל דוח דוחות תז מעמ חכ תנך "
    "זל נב אחכ בדכ ככ עש לפנהצ אחהצ חזל רמטכל דואל מטר מל בכ נל הנל וכד וכו תא תד מס יח סג "
    "הטב עמ שנא נט מב אא"
)


MIN_NAME_LENGTH = 3

_LETTER = re.compile("[א-ת]")
_MARKS = re.compile("[\"״”'׳’]")
_WORD = r"([א-ת][א-ת'׳\"״]*[א-ת])(?![א-ת])"
_BEFORE = "|".join([*TITLES, *CALLED, *PLACES])
_INTRODUCED = re.compile(rf"(?<![א-ת\"״'׳])[ולבמכש]?ה?(?:{_BEFORE})\.?\s+{_WORD}")
_QUOTED = re.compile(r"(?<![א-ת])[ושהבלמכ]{0,3}[\"״“„]([א-ת]{3,})[\"״”](?![א-ת])")
_ACRONYM = re.compile('[א-ת]+["״”][א-ת]')
# A listed name may have these before it; other prefixes make other words (משרה, ברות).
_BEFORE_PEOPLE = ("ול", "ו", "ל")
_BEFORE_ACRONYMS = "ובלה"
_BEFORE_TOWNS = tuple(first + then for first in ("ו", "ש", "") for then in ("ב", "ל", "מ", ""))


def is_hebrew(text: str) -> bool:
    return _LETTER.search(text) is not None


def mentioned_names(sentence: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the names that the sentence itself marks: after a title, in quotation marks, acronyms.

    ``words``: the words of the sentence.
    """
    plain = without_points(sentence)
    for match in [*_INTRODUCED.finditer(plain), *_QUOTED.finditer(plain)]:
        if _may_be_name(match[1]):
            yield match[1]
    for word in map(folded, words):
        if _ACRONYM.fullmatch(word) and not _is_abbreviation(word):
            yield _acronym(word)


def towns_of_two_words(words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the towns of two words in the sentence, each with the place of its first word."""
    plain = [folded(word) for word in words]
    for place, pair in enumerate(zip(plain, plain[1:], strict=False)):
        for first in _without(pair[0], _BEFORE_TOWNS):
            if (first, pair[1]) in TOWNS_OF_TWO_WORDS:
                yield place, f"{first} {pair[1]}"


def name_in(word: str, marked: Iterable[str]) -> str | None:
    """Return the name of a folded Hebrew word, maybe with prefix letters; None for no name.

    ``marked``: the names that any sentence has marked.
    """
    if word in marked or word in PEOPLE or word in TOWNS:
        return word
    for names, prefixes in ((PEOPLE, _BEFORE_PEOPLE), (TOWNS, _BEFORE_TOWNS)):
        for rest in _without(word, prefixes):
            if rest in names:
                return rest
    return next((rest for rest in without_prefixes(word)[1:] if rest in marked), None)


def _without(word: str, prefixes: Iterable[str]) -> Iterator[str]:
    yield word
    for prefix in prefixes:
        if prefix and word.startswith(prefix):
            yield word[len(prefix) :]


def _acronym(word: str) -> str:
    """Remove prefix letters if three letters are left: "ובארה״ב" becomes "ארה״ב"."""
    while word[0] in _BEFORE_ACRONYMS and len(_MARKS.sub("", word[1:])) >= MIN_NAME_LENGTH:
        word = word[1:]
    return word


def _may_be_name(word: str) -> bool:
    """Return whether the word isn't a common one: after "חברת" the firm's trade may follow."""
    bare = _MARKS.sub("", word)
    kind_of_firm = bare in NO_NAMES or bare.removeprefix("ה") in NO_NAMES
    if len(bare) < MIN_NAME_LENGTH or kind_of_firm or _is_abbreviation(word):
        return False
    return kind_of(Token(fold(bare), "hebrew")) is Kind.PLAIN


def _is_abbreviation(word: str) -> bool:
    bare = _MARKS.sub("", word)
    return len(bare) < MIN_NAME_LENGTH or any(
        rest in ABBREVIATIONS for rest in [bare, *_without(bare, "והבלמשכ")]
    )
