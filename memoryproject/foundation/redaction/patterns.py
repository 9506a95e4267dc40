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
_PARAMETERS = (
    r"[\w.-]{0,30}(?:token|key|secret|pass(?:w(?:or)?[dt])?|pwd|senha|clave|mdp"
    r"|signature|sig|credential|session|auth|otp)"
)
SECRET_URL = re.compile(
    # credentials before the host
    r"//[^/?#\s@]{1,200}@"
    rf"|[?&#;]{_PARAMETERS}=[^&#\s]{{4}}|[?&]code=[^&#\s]{{16}}"
    # a token in the path: Green API's, a Telegram bot's, Slack's, or of a link to sign in
    r"|/waInstance|/bot\d+:|hooks\.slack\.com/services/"
    r"|/(?:reset|invite|magic|verify|confirm)[\w-]{0,20}/?\?\w{1,20}="
    r"(?=[\w.-]{0,40}\d)(?=[\w.-]{0,40}[a-z])[\w.-]{8}"
    r"|/(?:reset|invite|magic|verify|confirm|token|login|signin|auth)[\w-]{0,20}/[\w.-]{16}",
    re.IGNORECASE,
)
# The number of a person may be part of these.
PERSONAL_URL = re.compile(r"wa\.me|whatsapp|phone|tel|mobile|@|%40|%2B", re.IGNORECASE)
# Addresses of WhatsApp chats (15550100123@c.us) have this form, too.
_LOCAL = r"[\w.!#$%&'*+/=?^`{|}~-]"
EMAIL = re.compile(rf"(?<!{_LOCAL}){_LOCAL}+@(?:[\w-]+\.)+[^\W\d_][\w-]+")
_PART = r"[\w.+-]{1,64}"
_DOT = (
    r"(?: ?\. ?|,(?=com|net|org)"
    rf"| ?[-_\"*(\[{{]?(?:{_words('dot')}|\.)[-_\"*)\]}}]? ?)"
)
_DOMAIN_END = rf"(?:{_words('domain_end')}|[a-z]{{2}})(?!\w)"
_HOST = (
    rf"[\w'-]{{1,63}}(?:{_DOT}[\w-]{{1,63}}){{0,3}}{_DOT}{_DOMAIN_END}(?:{_DOT}[a-z]{{2}}(?!\w))?"
)
# "at" alone is a common word, so the end of the address must be spelled out, too.
_BRACKETED = (
    rf"(?:[(\[{{<] ?(?:{_words('at')}|@) ?[)\]}}>]|[(\[](?<=\w.)a[)\]](?=\w)"
    rf"|[-_\"*]{_words('at')}[-_\"*])"
)
_AT = rf"(?: ?{_BRACKETED} ?| @ ?|@ |@{{1,2}}| (?!at ){_words('at')} )"
DISGUISED = re.compile(
    rf"(?<![\w.+-]){_PART}"
    rf"(?:(?: {_words('joint', 'dot')} |[(\[{{]{_words('dot')}[)\]}}]){_PART}){{0,3}}"
    rf"(?: (?:\d{{1,4}}|{_words('digit')}))?"
    rf"(?:{_AT}{_HOST}"
    rf"| at [\w-]{{1,63}}(?: {_words('dot')} [\w-]{{1,63}}){{0,3}} {_words('dot')} {_DOMAIN_END}"
    r"| at (?:gmail|hotmail|outlook|yahoo|icloud|proton(?:mail)?|walla|yandex|mail)"
    r"\.[a-z]{2,3}(?:\.[a-z]{2})?(?!\w))",
    re.IGNORECASE,
)

# Without its end, such as "com": a name with a mark in it, at a well-known service.
_MAIL = rf"{_words('mail')}(?!\w)"
SHORTENED = re.compile(
    rf"(?<![\w.@])[^\W\d_](?:[^\W_]|-){{1,30}}(?:[._]\w{{2,30}}(?<!\.com)(?<!\.net)(?<!\.org)|(?<=\d))"
    rf"(?: ?@ ?| (?:at|en|no|bei|auf|sur|chez|su|на|على|في) | ב-?){_MAIL}",
    re.IGNORECASE,
)

# A telephone number in words, and the code behind the number of a card.
_MIN_NUMERALS, _MIN_SPELLED = 3, 7
_NUMERALS = frozenset(word for each in _LISTS for word in each["digit"])
_SPACE = r"[ ,./-]{1,3}(?:(?:and|y|e|et|und|и) )?"
_NUMERAL = rf"(?:{_words('digit')}(?!\w)|o?\d{{1,5}}(?!\w))"
SPELLED = re.compile(
    rf"(?<![\w.,])(?:plus )?{_NUMERAL}(?:{_SPACE}{_NUMERAL}){{{_MIN_NUMERALS - 1},24}}",
    re.IGNORECASE,
)
CARD_CODE = re.compile(
    r"\[card\][^\d\n\[]{0,25}(?:\d\d ?[/-] ?(?:20)?\d\d[^\d\n\[]{0,25})?"
    rf"(?<=[ ,]){_words('bare_code')}:? (?P<code>\d{{3,4}})(?![\w/:-])",
    re.IGNORECASE,
)


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


_MONTH = _words("month")
_YEAR = r"(?:(?:19|20)\d{2}|'?\d{2})(?!\d)(?: год[ау]?(?!\w))?"
_DAY = r"(?<!\d)\d{1,2}(?:st|nd|rd|th|er|º|\.|-?го|-?е)?"
_OF = r"[,.]? ?(?:de |do |del |of |en )?"
_WRITTEN = (
    rf"(?:{_DAY} ?{_OF}{_MONTH}(?!\w)(?:{_OF}{_YEAR})?|(?<!\w)(?<!\d )(?<!\d\. ){_MONTH}"
    rf"(?: {_DAY}(?!\d)(?:,? {_YEAR})?|(?!\w){_OF}(?:19|20)\d{{2}}(?!\d)))"
)
_NUMERIC = (
    # a day, also the last of a range of days
    r"(?:(?<!\d)(?<!\d[-./])(?:\d{1,2}\.?-)?(?:[0-2]?\d|3[01])(?P<to>[-./])(?:[0-2]?\d|3[01])(?P=to)\d{2,4}(?![-./]?\d)"
    r"|(?<!\d)(?<!\d[-./])\d{4}(?P<by>[-./])\d{1,2}(?P=by)\d{1,2}(?![-./]?\d))"
)
_COMPACT_DATE = r"(?<!\d)(?:[0-3]\d[01]\d(?:19|20)\d\d|(?:19|20)\d\d[01]\d[0-3]\d)(?!\d)"
_HEBREW = (
    r"(?:[א-ט]'|[יכל]'|[יכל]\"[א-ט]|ט\"[וז]) "
    rf"[בל]?{_words('hebrew_month')}(?: ה?'?ת[א-ת]{{1,3}}\"[א-ת])?(?!\w)"
)
_DATE = (
    rf"(?:{_NUMERIC}|{_WRITTEN}|{_COMPACT_DATE}|{_HEBREW}"
    # Only what is over can be the year of a birth.
    r"|(?<![\d.,])(?:19\d\d|20[01]\d)(?!\d)(?: год[ау]?(?!\w))?)"
)
_BIRTH = _words("birth")
# At the beginning of a sentence: a shop or a brand has no birthday.
BIRTH_OF_THING = re.compile(
    r"(?:^|(?<=[.!?;,] ))(?:[^\W\d_]{1,8} ){0,2}"
    rf"[הוא]?(?:ال)?{_words('thing')}(?!\w)(?: [^\W\d_]{{1,8}}){{0,2}}? {_BIRTH}{_END}"
    rf"[^\d,;!?\n\x00]{{0,40}}?(?P<code>{_DATE})",
    re.IGNORECASE | re.MULTILINE,
)
BIRTH_WORD = re.compile(_BIRTH, re.IGNORECASE)
BIRTH = re.compile(
    # A date before the word is taken already.
    rf"(?<!\x00)(?<!\x00 ){_START}{_BIRTH}{_END}(?:[^\d,;!?\n\x00]{{0,40}}?(?P<code>{_DATE})"
    # nobody lives who was born then
    rf"(?!{_OF}1[0-8]\d\d(?!\d))"
    # a day alone stands close to the word
    rf"|:? (?:(?!на ){_LETTERS}{{1,3}} ){{0,2}}"
    r"(?P<day>[0-3]?\d[./](?:0\d|1[0-2])|20[23]\d(?!\d))"
    rf"(?![\d./]| ?{_words('quantity')}))",
    re.IGNORECASE,
)
BIRTH_AFTER = re.compile(
    rf"(?:(?<!\w)|(?=\d))(?P<code>{_DATE})[ (-]{{0,3}}"
    r"(?:is my |is |es mi |é (?:a )?(?:minha )?|זה |הוא |года? )?"
    rf"{_BIRTH}(?!\w)(?![^\w\n]{{0,3}}\d)",
    re.IGNORECASE,
)

_PARTS.update(NUMERIC=_NUMERIC, WRITTEN=_WRITTEN)
# Follows an address any number of times: flat, floor, postal code, town. After a full stop that
# ends no abbreviation, another sentence begins.
_NEXT = r"(?:(?<!«LETTERS»{4}\.)|(?<=blvd\.))(?:,? | ?- |,)"
ADDRESS_PART = _compiled(
    f"{_NEXT}«PART_OF»|,?\\n(?:«POSTCODE»|«UNIT»|«NAME»(?:[ -]«NAME»){{0,2}},?[ \\n]«POSTAL»"
    r"|\d{4,6} «NAME»(?: «NAME»){0,2}(?=[,\n]|$))"
)
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
SORT_CODE = re.compile(
    r"(?:sort(?:[ -]code)?(?: is)?|s/?c):?[^\S\n]{0,2}(?P<code>\d\d[ -]\d\d[ -]\d\d)(?!\d)",
    re.IGNORECASE,
)
COMBINATION = re.compile(
    rf"{_START}(?:{_words('combination')}(?: {_LETTERS}{{1,12}}){{0,3}}?(?: ?:| {_words('is')})?"
    rf"|{_words('opening')}(?: {_LETTERS}{{1,12}}){{0,2}}?(?: ?:| {_words('is', 'with')})) "
    r"(?P<code>\d{1,2}(?:[ -]\d{1,2}){2,3})(?![\w-])",
    re.IGNORECASE,
)

# What stays: it only looks like personal data.
OTHERS = re.compile(
    rf"(?=\d)(?:{_filled('|'.join(_FORMS['other_number'].values()))})"
    rf"|(?:(?<!\w)(?!\d)|(?=[$€£₪₽]))(?:{_filled('|'.join(_FORMS['other'].values()))})",
    re.IGNORECASE,
)
UNIX_TIME = re.compile(r"(?<![\d+.-])1[67]\d{8}(?:\.\d{1,6}|\d{3})?(?![\d-])")
REFERENCE = re.compile(
    rf"{_START}{_words('reference')}{_END}(?:[^\S\n]?[:#№]{{1,2}}|[^\S\n]{_words('number')}(?!\w)){{0,3}}"
    # Behind a colon, a number that begins with 0 may be a telephone's.
    r"[^\S\n]{0,2}(?P<code>(?:(?-i:[A-Z]{2}) (?=\d{1,4}(?! ?\d))|[^\W\d_]{0,6}[-_/]?)"
    r"(?:(?<!:)(?<!: )|(?!0\d{8,10}(?!\d)))\d[\w/-]{0,40}"
    r"(?: \d{4}(?= \d)){0,4}(?:(?<=\d{4}) \d{1,4}(?!\d))?)",
    re.IGNORECASE,
)
# What never is personal data: a UUID, a message's id at WhatsApp, the time of day.
IDENTIFIER = re.compile(
    r"(?<![\da-f])[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?![\da-f])"
    r"|(?<!\w)wamid\.[\w=+/-]{1,200}|(?<!\d)\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,6})?)?(?!\d)",
    re.IGNORECASE,
)
# A text without any of the following has no personal data that is recognised. They are cheap.
SUSPECT = re.compile(
    rf"\d|\w{{20}}|[@:=\uff20\"״]|(?<= )(?:\S?at\S?|{_words('at')})(?= )|{_BRACKETED}"
    rf"|{_words('password')}|alias |-----BEGIN|{_MAIL}",
    re.I,
)
AT = re.compile(rf"@|{_BRACKETED}| (?:{_words('at')})(?= )|{_MAIL}", re.IGNORECASE)
LONG_NUMBER = re.compile(
    r"\d(?:[ ./()+-]{0,6}\d){5}|\d[ºª]|\d{4}(?<=[a-z]{5}\d{4})[a-z]"
    r"|\d\d(?<=[a-z]{6}\d\d)[a-z]\d\d|bc1|0x|\d, (?:[a-z]{1,2}-)?\d{4}",
    re.IGNORECASE,
)
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
    rf"(?<![^\W\u0590-\u06ff]){_SMALL_WORDS}(?!\w)"
    + _filled(
        r"|(?:«GERMAN_ROAD»|«GERMAN_WAY») ?\d|«GERMAN_AT» «LETTERS»{2,30} \d"
        r"|(?:«GERMAN_ROAD»|«GERMAN_WAY») (?:de[rs]|am|zu[mr]) |«GERMAN_FIELD» \d"
        r"|(?<!\w)(?:на|по) [а-яё]{4,20},? \d|[сво](?:к(?:ий|ая|ой|ую)|ая|ой|ую),? \d"
    )
)
