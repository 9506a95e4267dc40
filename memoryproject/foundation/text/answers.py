"""What kind of thing a question asks for (an amount, a time of day, a date, a phone number), and
which of them a text holds. English and Hebrew."""

# ruff: noqa: E501 patterns
from __future__ import annotations

import re

from memoryproject.foundation.text.tokens import MAX_TEXT

_DAYS = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july|august|"
    r"september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|tomorrow|"
    r"weekends?"
)
_HEBREW_DAYS = (
    r"[בהלמ]?(?:ראשון|שלישי|רביעי|חמישי|שישי|שבת|ינואר|פברואר|מרץ|אפריל|מאי|יוני|יולי|אוגוסט|"
    r"ספטמבר|אוקטובר|נובמבר|דצמבר|מחר|סופש)"
)
_NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|couple|both|twice"
_HEBREW_NUMBERS = (
    r"אחד|אחת|שני|שתי|שניים|שתיים|שלוש|שלושה|ארבע|ארבעה|חמש|חמישה|שש|שישה|שבע|שבעה|שמונה|תשע|תשעה|"
    r"עשר|עשרה|פעמיים"
)
_HELD = {
    "amount": r"[$€£₪]\s?\d|\d\s?(?:[$€£₪]|usd\b|eur\b|nis\b|dollars?\b|euros?\b|shekels?\b|"
    r"ש[\"״”']?ח|שקל|דולר|יורו)|\d\s?%|\bfree\b|(?<!\w)חינם",
    "clock": r"\d{1,2}[:.]\d\d(?!\d)|\b\d{1,2}\s?(?:am|pm)\b|\bnoon\b|\bmidnight\b|\bo'?clock\b"
    r"|(?:בשעה|בצהריים|בחצות)",
    "day": rf"\b(?:{_DAYS})\b|(?-i:\bMay\b)|(?<!\w){_HEBREW_DAYS}(?!\w)|\b\d{{1,2}}(?:st|nd|rd|th)\b"
    r"|(?<!\d)\d{1,2}[./]\d{1,2}(?:[./]\d{2,4})?(?!\d)|\b(?:19|20)\d\d\b|[בלמה]-?\d{1,2}\s+לחודש",
    "phone": r"(?<!\d)\+?\d(?:[ -]?\d){8,}(?!\d)",
    "email": r"[\w.+-]@[\w-]+\.\w",
    "number": rf"\d|\b(?:{_NUMBERS})\b|(?<!\w)[וב]?(?:{_HEBREW_NUMBERS})(?!\w)",
    "length": rf"(?:\d|\b(?:an?|half|{_NUMBERS})\b)[ -]?(?:minutes?|mins?|hours?|hrs?|days?|weeks?|months?|"
    r"years?)\b|(?<!\w)ב?(?:דקות|שעה|שעתיים|שעות|יומיים|ימים|שבועיים|שבועות|חודשיים|חודשים|שנתיים|שנים|"
    r"שבוע|חודש|שנה)(?!\w)",
}
_SOUGHT = {
    "amount": r"\bhow much\b|\b(?:price|cost|costs|fee|rate|quote|quoted|total|owe|owes|debt|charge|"
    r"charges|pay|budget|salary|rent|deposit)\b|כמה\s+(?:זה\s+|הוא\s+|היא\s+)?(?:עולה|עולות|עולים|עלה|"
    r"עלתה|לשלם|משלמים|שילמנו|חייב|כסף|לוקח)|(?<!\w)[הבלמ]?(?:מחיר|מחירים|תעריף|עלות|שכר|שכירות|חוב)(?!\w)",
    "clock": r"\b(?:when|what time|until when|how late|how early|hours)\b|"
    r"(?<!\w)(?:מתי|שעות|נסגר|נפתח)(?!\w)|באיז[הו] שע",
    "day": r"\b(?:when|what date|what day|which day|which days|what days|deadline|birthday)\b|"
    r"(?<!\w)(?:מתי|באיזה יום|באיזה תאריך|באיזה ימים|באילו ימים|תאריך)(?!\w)",
    "phone": r"\b(?:phone|telephone|mobile|call|reach|contact)\b|\bnumber (?:of|for)\b|"
    r"(?<!\w)[ה]?(?:טלפון|נייד|להתקשר|המספר של|מספר של)(?!\w)",
    "email": r"\be-?mail(?: address)?\b|(?<!\w)ה?(?:מייל|אימייל|דוא[\"״]ל)(?!\w)",
    "number": r"\bhow many\b|(?<!\w)כמה(?!\s+(?:זמן|זה\s|עולה|עולות|עולים|עלה|עלתה))(?!\w)",
    "length": r"\bhow long\b|(?<!\w)(?:כמה זמן|תוך כמה|למשך)(?!\w)",
}
_HELD_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _HELD.items()}
_SOUGHT_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _SOUGHT.items()}


def answer_kinds_of_text(text: str) -> list[str]:
    """The kinds of answers that ``text`` holds."""
    read = text[:MAX_TEXT]
    return [kind for kind, pattern in _HELD_PATTERNS.items() if pattern.search(read)]


def answer_kinds_of_question(question: str) -> list[str]:
    """The kinds of answers that ``question`` asks for, any of which will do."""
    read = question[:MAX_TEXT]
    return [kind for kind, pattern in _SOUGHT_PATTERNS.items() if pattern.search(read)]
