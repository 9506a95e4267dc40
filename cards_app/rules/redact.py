"""Redact personal data in a text: e-mail addresses, telephone, card and account numbers, secrets.

``stdnum`` validates an account number and its length in its country. A country's own check digits
inside it are not validated, since redacting a number too many is acceptable.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from cards_app.rules.numbers import NumberKind, personal_numbers

# Recognise personal data by the words before it, or by its form: passwords, keys, ids, accounts.

HIDDEN = "[secret]"
ID = "[id]"
ACCOUNT = "[account]"
EMAIL = "[email]"

_NAMES = (
    r"(?:password|passcode|passwd|pin(?: code)?|api[ _-]?key|secret[ _-]key|access[ _-]token"
    r"|ה?סיסמ[הא](?: של[ינ]\w?)?)"
)
# After a colon any word is the secret; otherwise it has a digit, unlike "the password is wrong".
_NAMED = re.compile(
    rf"(?<!\w)({_NAMES}(?: {{0,2}}[:=] {{0,2}}| (?:is |was |היא )?(?=\D{{0,40}}\d)))"
    r"(\S{1,200})",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.,;:!?)\]\"'״]{1,5}$")
# The forms of keys of well-known services and of this server's own tokens.
_KEY = re.compile(
    r"(?<![\w-])(?:sk-[\w-]{16,200}|gh[pousr]_\w{20,200}|github_pat_\w{20,200}|xox[abprs]-[\w-]{10,200}"
    r"|AKIA[0-9A-Z]{16}|AIza[\w-]{30,60}|mem_[\w-]{40,60}|eyJ[\w-]{10,2000}\.[\w.-]{10,4000})",
    re.ASCII,
)
_ID = re.compile(
    r"(?<!\w)((?:id|passport|ת\.? ?ז\.?|תעודת זהות|דרכון)"
    r"(?: number| no\.?| מספר| מס׳)?(?: is| של\w{1,3}| הוא)?:? )"
    r"([A-Z]{0,2}\d[\d -]{4,12}\d)(?![\w-])",
    re.IGNORECASE,
)
# An Israeli id as it is written with its check digit apart.
_SPLIT_ID = re.compile(r"(?<![\w-])(?:\d{7,8}-\d|\d \d{7} \d)(?![\w-])", re.ASCII)
_ACCOUNT = re.compile(
    r"(?<!\w)((?:account|חשבון)(?: number| no\.?| מספר| מס׳)?(?: is| הוא)?:? )"
    r"(\d[\d-]{4,16}\d)(?![\w-])",
    re.IGNORECASE,
)
_DISGUISED = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64} ?(?:\(at\)|\[at\]) ?[\w-]{1,63}"
    r"(?: ?(?:\.|\(dot\)|\[dot\]|(?<= )dot(?= )) ?[\w-]{1,63}){1,4}",
    re.IGNORECASE,
)


def redact_named(text: str) -> str:
    """Return the text with a mark for each secret, id, account and disguised e-mail address."""
    text = _DISGUISED.sub(EMAIL, text)
    text = _KEY.sub(HIDDEN, text)
    text = _NAMED.sub(_without_secret, text)
    text = _ID.sub(_after_name(ID), text)
    text = _SPLIT_ID.sub(_without_id, text)
    return _ACCOUNT.sub(_after_name(ACCOUNT), text)


def _after_name(mark: str) -> Callable[[re.Match[str]], str]:
    return lambda found: f"{found[1]}{mark}"


def _without_secret(found: re.Match[str]) -> str:
    """Keep the punctuation of the sentence; a word without a digit is no secret after "is"."""
    name, word = found[1], found[2]
    is_sure = name.rstrip().endswith((":", "="))
    if not is_sure and not any(character.isdigit() for character in word):
        return found[0]
    end = _SENTENCE_END.search(word)
    # A mark ends in a bracket, too.
    if word.startswith("[") and word.rstrip(".,;:!?").endswith("]"):
        return found[0]
    return f"{name}{HIDDEN}{end.group() if end and end.start() else ''}"


def _without_id(found: re.Match[str]) -> str:
    from stdnum.il import idnr  # noqa: PLC0415 slow to import

    digits = re.sub(r"\D", "", found[0]).zfill(9)
    return ID if idnr.is_valid(digits) else found[0]


IBAN = "[iban]"
NUMBER_MARKS = {NumberKind.CARD: "[card]", NumberKind.PHONE: "[phone]"}
MARKS = (EMAIL, IBAN, *NUMBER_MARKS.values(), HIDDEN, ID, ACCOUNT)

# Addresses of WhatsApp chats (15550100123@c.us) have this form, too.
_LOCAL = r"[\w.!#$%&'*+/=?^`{|}~-]"
_EMAIL = re.compile(rf"(?<!{_LOCAL}){_LOCAL}+@(?:[\w-]+\.)+[^\W\d_][\w-]+")

_IBAN_START = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?=[ -]?[A-Za-z0-9])")
_IBAN_REST = re.compile(r"(?:[ -]?[A-Za-z0-9])+", re.ASCII)
_MIN_IBAN_LENGTH, _MAX_IBAN_LENGTH = 15, 34


def redact(text: str) -> str:
    """Return the text with a mark such as "[phone]" for each piece of personal data.

    Telephone numbers are recognised generously: redacting a number too many is better than one
    too few. Dates, times, IP addresses and amounts stay. The function is idempotent.
    """
    while True:
        # A redaction may reveal another match ("a@b.example@c.example").
        clean = _redact_once(text)
        if clean == text:
            return text
        text = clean


def _redact_once(text: str) -> str:
    text = redact_named(_EMAIL.sub(EMAIL, text))
    text = _without_ibans(text)
    parts: list[str] = []
    place = 0
    for number in personal_numbers(text):
        parts += [text[place : number.start], NUMBER_MARKS[number.kind]]
        place = number.end
    return "".join([*parts, text[place:]])


def _without_ibans(text: str) -> str:
    parts: list[str] = []
    place = 0
    for start in _IBAN_START.finditer(text):
        end = _iban_end(text, start.start()) if start.start() >= place else None
        if end is not None:
            parts += [text[place : start.start()], IBAN]
            place = end
    return "".join([*parts, text[place:]])


def _iban_end(text: str, start: int) -> int | None:
    """Return where the account number that starts here ends; None if there is none.

    Words may follow it after a space, so the end of each group is tried, the farthest first.
    """
    # Twice the length leaves room for a space or a hyphen before each character.
    rest = _IBAN_REST.match(text, start, start + 2 * _MAX_IBAN_LENGTH)
    if rest is None:
        return None
    from stdnum import iban  # noqa: PLC0415 slow to import

    for end in range(rest.end(), start, -1):
        if text[end : end + 1].isascii() and text[end : end + 1].isalnum():
            continue
        compact = re.sub("[ -]", "", text[start:end])
        fits = _MIN_IBAN_LENGTH <= len(compact) <= _MAX_IBAN_LENGTH
        if fits and iban.is_valid(compact, check_country=False):
            return end
    return None
