"""The patterns of personal data that is recognised by its words or by its form.

The words of each language are in ``words/*.json``, as regular expressions. All patterns expect a
text as ``normalised`` returns it, and each repetition has a limit, so that they take linear time.
"""

import json
import re
from pathlib import Path

_LISTS = [
    json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(Path(__file__).with_name("words").glob("*.json"))
]
_FORMS = json.loads(Path(__file__).with_name("forms.json").read_text(encoding="utf-8"))
# Digits of other scripts, dashes, spaces, direction marks and quotation marks, one character each.
_SAME = {
    **{code: str(int(chr(code))) for code in range(0x660, 0x1E951) if chr(code).isdecimal()},
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u05be"), "-"),
    **dict.fromkeys(
        map(ord, "\t\u00a0\u2007\u2009\u200b\u200e\u200f\u202f\u20e3\ufe0f\ufeff"), " "
    ),
    **dict.fromkeys(map(ord, "\u00b7\u2022\u2024\uff0e"), "."),
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], " "),
    **dict.fromkeys(map(ord, "\u05f4\u201c\u201d\u201e"), '"'),
    **dict.fromkeys(map(ord, "\u05f3\u2019"), "'"),
    **{
        ord("\u060c"): ",",
        ord("\u066c"): ",",
        ord("\u066b"): ".",
        ord("\uff20"): "@",
        ord("\uff0b"): "+",
        ord("\uff1a"): ":",
    },
}


def normalised(text: str) -> str:
    """Return the text with digits 0 to 9 and simple marks; every character keeps its place."""
    return text if text.isascii() else text.translate(_SAME)


def _beginnings(word: str) -> list[str]:
    """Return the word once for each beginning: "(?:a|b)?c" as "ac", "bc" and "c"."""
    if found := re.match(r"\[(\w+)\](\??)(?=\w)", word):
        options, end = [*found[1], *([""] if found[2] else [])], found.end()
    elif word.startswith("(?:"):
        options, end = _options(word)
        if word[end : end + 1] == "?":
            options, end = [*options, ""], end + 1
    else:
        return [word]
    if word[end : end + 1] in ("*", "+", "{") or not word[end:] and "" in options:
        return [word]
    return [begun for option in options for begun in _beginnings(option + word[end:])]


def _options(word: str) -> tuple[list[str], int]:
    """Return the alternatives of the group with which the word begins, and where the group ends."""
    options, depth, start = [], 0, 3
    for mark in re.finditer(r"\\.|\[[^][]*\]|[()|]", word):
        depth += {"(": 1, ")": -1}.get(mark[0], 0)
        if depth == 0 or depth == 1 and mark[0] == "|":
            options.append(word[start : mark.start()])
            start = mark.end()
        if depth == 0:
            break
    return options, start


def _words(*kinds: str) -> str:
    """Return an alternation of the words of these kinds in all languages, the longest first.

    Those with the same first letter stand together, so that few are tried at each place.
    """
    by_letter: dict[str, list[str]] = {}
    words = {
        begun
        for each in _LISTS
        for kind in kinds
        for word in each.get(kind, ())
        for begun in _beginnings(word)
    }
    for word in sorted(words, key=lambda word: (-len(word), word)):
        has_letter = word[0].isalpha() and word[1:2] not in ("?", "*", "{")
        by_letter.setdefault(word[0] if has_letter else "", []).append(word)
    groups = [
        f"{first}(?:{'|'.join(word[len(first) :] for word in some)})"
        for first, some in by_letter.items()
    ]
    return f"(?:{'|'.join(groups)})"


# Before a word: the prefix letters of Hebrew and Arabic, and the article.
_START = r"(?<!\w)(?:[והבלמשכ]{1,2}|[وفبلك]{0,2}ال|[وفبلك]{1,2})?"
_END = r"(?<=[\w.'º°/])(?!\w)"
_LETTERS = r"[^\W\d_]"
_PARTS = {**_FORMS["parts"], "START": _START, "END": _END, "LETTERS": _LETTERS}


def _filled(text: str) -> str:
    """Return the pattern with what each «…» stands for: a part, or words of these kinds."""

    def meant(found: re.Match[str]) -> str:
        name = found[1]
        return _filled(_PARTS[name]) if name in _PARTS else _words(*name.split())

    return re.sub("«([^«»]+)»", meant, text)


def _any_of(form: str) -> str:
    return "|".join(_FORMS[form].values())


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(_filled(text), re.IGNORECASE)


# Numbers that a word names.
NAMED = {kind: _compiled(form) for kind, form in _FORMS["named"].items()}
# The number of a card whose check digit is wrong: its month or its code stands behind it.
CARD_BESIDE = _compiled(_FORMS["card_beside"])
# Passwords and keys, and codes that open a door or confirm something. Without a colon, a secret
# has a digit or a mark inside, unlike "the password is wrong"; of plain words there is nothing but
# the end of a clause behind it; of other codes only those of digits are found.
SECRETS = tuple(
    (name.partition(":")[0], _compiled(form)) for name, form in _FORMS["secret"].items()
)

URL = re.compile(r"(?<![a-z\d])[a-z][a-z\d+.-]{1,20}://[^\s<>\"']{1,4000}", re.IGNORECASE)
SECRET_URL = _compiled(_any_of("secret_url"))
# The number of a person may be part of these.
PERSONAL_URL = re.compile(r"wa\.me|whatsapp|phone|tel|mobile|@|%40|%2B", re.IGNORECASE)
# Addresses of WhatsApp chats (15550100123@c.us) have this form, too.
_LOCAL = r"[\w.!#$%&'*+/=?^`{|}~-]"
EMAIL = re.compile(rf"(?<!{_LOCAL}){_LOCAL}+@(?:[\w-]+\.)+[^\W\d_][\w-]+")
# "at" alone is a common word, so the end of the address must be spelled out, too.
DISGUISED = _compiled(_FORMS["disguised"])
# Without its end, such as "com": a name with a mark in it, at a well-known service.
SHORTENED = _compiled(_FORMS["shortened"])

# A telephone number in words, and the code behind the number of a card.
_MIN_NUMERALS, _MIN_SPELLED = 3, 7
_NUMERALS = frozenset(word for each in _LISTS for word in each["digit"])
_SPACE = r"[ ,./-]{1,3}(?:(?:and|y|e|et|und|и) )?"
_NUMERAL = rf"(?:{_words('digit')}(?!\w)|o?\d{{1,5}}(?!\w))"
SPELLED = re.compile(
    rf"(?<![\w.,])(?:plus )?{_NUMERAL}(?:{_SPACE}{_NUMERAL}){{{_MIN_NUMERALS - 1},24}}",
    re.IGNORECASE,
)
CARD_CODE = _compiled(_FORMS["card_code"])


def holds_numerals(text: str) -> bool:
    """Return whether the text has as many numerals as a telephone number in words. Cheap."""
    words = re.sub("[,./-]", " ", text.lower()).split()
    return sum(map(_NUMERALS.__contains__, words)) >= _MIN_NUMERALS


def is_spelled(number: str) -> bool:
    """Return whether this has the digits of a telephone number, and three of them in words."""
    digits = sum(map(str.isdigit, number))
    return (
        holds_numerals(number) and digits + len(re.findall(r"[^\W\d]{2,}", number)) >= _MIN_SPELLED
    )


# At the beginning of a sentence: a shop or a brand has no birthday.
BIRTH_OF_THING = re.compile(_filled(_FORMS["birth_of_thing"]), re.IGNORECASE | re.MULTILINE)
BIRTH_WORD = _compiled("«birth»")
# A date before the word is taken already, nobody lives who was born before 1900, and a day alone
# stands close to the word. Of years alone, only one that is over can be the year of a birth.
BIRTH = _compiled(_FORMS["birth"])
BIRTH_AFTER = _compiled(_FORMS["birth_after"])

# Follows an address any number of times: flat, floor, postal code, town. After a full stop that
# ends no abbreviation, another sentence begins.
ADDRESS_PART = _compiled(_FORMS["address_part"])
# The last are for a street that isn't called one. After "my address is" any name with a number is
# enough; after "I am at" it has a capital, or is of a script without them.
ADDRESSES = tuple(map(_compiled, _FORMS["address"].values()))


# What needs no word. stdnum's module of the form's name checks the digits ("br_cpf": br.cpf);
# "certain" are those that it doesn't know.
def _forms(kind: str) -> str:
    named = _FORMS[kind].items()
    return "|".join(f"(?P<{name}>{'|'.join(forms)})" for name, forms in named)


_STARTS = r"(?=[a-z&ñ]{0,6}-?\d)"
ID_FORMS = re.compile(
    rf"(?<![\w+-])(?<![\d.]\.){_STARTS}(?:{_forms('id')})(?![\w-]|\.\d)", re.IGNORECASE
)
ACCOUNT_FORMS = re.compile(rf"(?<![\w.-])(?:{_forms('account')})(?![\w-])")
PHONE_FORMS = re.compile(rf"(?<![\w+.-])(?:{_forms('phone')})(?![\w-])")
PLATE_FORMS = re.compile(rf"(?<![\w.-])(?:{_forms('plate')})(?![\w-])")
# Of well-known services, and this server's own tokens.
KEY = re.compile(rf"(?<![\w-])(?:{_forms('key')})", re.ASCII)
# These have the form of a date.
SORT_CODE = _compiled(_FORMS["sort_code"])
COMBINATION = _compiled(_FORMS["combination"])

# What stays: it only looks like personal data.
OTHERS = _compiled(
    rf"(?=\d)(?:{_any_of('other_number')})"
    rf"|(?:(?<!\w)(?!\d)|(?=[$€£₪₽]))(?:{_any_of('other')})"
)
UNIX_TIME = re.compile(r"(?<![\d+.-])1[67]\d{8}(?:\.\d{1,6}|\d{3})?(?![\d-])")
# Behind a colon, a number that begins with 0 may be a telephone's.
REFERENCE = _compiled(_FORMS["reference"])
# What never is personal data.
IDENTIFIER = _compiled(_any_of("identifier"))
# A text without any of the following has no personal data that is recognised. They are cheap.
SUSPECT = _compiled(_FORMS["suspect"])
AT = _compiled(_FORMS["at"])
LONG_NUMBER = _compiled(_FORMS["long_number"])
NAMES = (
    *("birth", "passport", "id", "account", "branch", "plate", "secret", "password", "code"),
    *("bare_code", "as_password", "combination", "phrase", "login", "phone", "vehicle", "network"),
    *("opening", "card_code", "card"),
)
PLACES = (
    *("address", "living", "whereabouts", "street", "street_after", "street_mid"),
    *("street_before", "street_before_name", "box", "town", "hamlet", "building"),
    *("flat", "code_of_place", "city_mark", "district"),
)
# For a text in small letters.
_SMALL_WORDS = rf"(?:{_words(*NAMES, *PLACES)}|{_filled('«BRING»')})".replace(
    "(?-i:", "(?:"
).lower()
KNOWN_WORD = re.compile(
    rf"(?<![^\W\u0590-\u06ff]){_SMALL_WORDS}(?!\w){_filled(_FORMS['known_word'])}"
)
