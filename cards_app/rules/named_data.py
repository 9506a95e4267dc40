"""Recognise personal data by the words before it, or by its form: passwords, keys, ids, accounts.

A number of six digits is nothing by itself; after "passport" it is one. Only what is named or has
an unmistakable form is redacted here: see numbers.py for what is recognised by its digits alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable

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
