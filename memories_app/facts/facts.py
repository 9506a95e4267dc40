"""Decide whether two texts state the same fact, and whether the newer replaces the older.

Both rules are conservative: two facts that are kept apart cost a line in a list, two facts that
are merged by mistake lose information. Both rules compare keys for equality, so that an index
finds the few relevant texts among any number.
"""

from __future__ import annotations

import enum
import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial

from memories_app.facts import lexicon
from memories_app.facts.fact_parser import NUMBER, TEMPORAL, TIME, Token, tokens_of
from memories_app.facts.frames import RENEWING, Frame, frames_of
from memories_app.facts.validity import MAX_STATEMENT, without_periods
from memoryproject.foundation.text.characters import fold

# Before the key of a subject, and of a speaker; "s" and "f" are before those of a text.
_SUBJECT = "t"
_SPEAKER = "p"
_SPACES = re.compile(r"\s+")
_ENDING = " .,;:!…"
_LEFT_OUT = lexicon.ARTICLES | lexicon.FILLERS | lexicon.ENGLISH_COPULAS


def fact_key(content: str) -> str:
    """Return the hex SHA-256 of the text without differences that a reader ignores.

    These are case, marks, spaces and the punctuation at the end.
    """
    spaced = _SPACES.sub(" ", folded(content)).strip()
    return _hash(spaced.rstrip(_ENDING) or spaced or content)


def folded(text: str) -> str:
    """Return the text in the form in which facts are compared.

    It keeps what folding would lose: the stroke that negates a sign, and raised digits.
    """
    if text.isascii():
        # It has neither of them.
        return fold(text)
    apart = unicodedata.normalize("NFD", text).replace("\u0338", " not ")
    marked = "".join(_unraised(character) for character in apart)
    return fold(marked.replace("’", "'").replace("‘", "'"))


def _unraised(character: str) -> str:
    kind = unicodedata.decomposition(character).partition(" ")[0]
    if kind in ("<super>", "<sub>", "<fraction>"):
        return f" ^{unicodedata.normalize('NFKC', character)} "
    return character


@dataclass(frozen=True)
class Likeness:
    """The form in which a text is compared.

    ``sense`` is equal for texts that state the same; ``frames`` are the statements with their
    value left open. ``renewed``: it says that its value is a new one.
    ``first_person``: it is about its speaker.
    """

    sense: str
    frames: tuple[Frame, ...]
    renewed: bool = False
    first_person: bool = False

    @property
    def keys(self) -> list[str]:
        """Return the keys; texts that are relevant to each other share at least one."""
        return [f"s{self.sense}", *sorted({f"f{frame.key}" for frame in self.frames})]


def subject_keys(subject: str, speaker: str = "") -> list[str]:
    """Return the keys of what a memory is about, as they stand beside those of its likeness.

    There is none for an empty subject, and for an empty speaker.
    """
    return [
        f"{sign}{_short_hash(fact_key(about))}"
        for sign, about in ((_SUBJECT, subject), (_SPEAKER, speaker))
        if about
    ]


def speakers_in(keys: Iterable[str]) -> set[str]:
    """Return the keys of who said it, which are known only where several people write."""
    return {key for key in keys if key.startswith(_SPEAKER)}


def kept_subject(keys: Iterable[str]) -> list[str]:
    """Return the keys that don't come from the text: they stay when it changes."""
    return [key for key in keys if key.startswith((_SUBJECT, _SPEAKER))]


def likeness_of(content: str) -> Likeness:
    """Return the form in which a text is compared."""
    text = folded(content)
    tokens = tokens_of(text)
    sense = " ".join(token.text for token in _sense(tokens))
    statement = without_periods(content)
    read = pivot(text if statement == content else folded(statement))
    if read != text:
        tokens = tokens_of(read)
    return Likeness(
        _short_hash(sense or text),
        tuple(frames_of(read, tokens, _short_hash)),
        renewed=statement != content or RENEWING.search(read) is not None,
        first_person=any(token.text in lexicon.FIRST_PERSON for token in tokens),
    )


class Verdict(enum.IntEnum):
    """The relation of a newer text to an older one."""

    BESIDE = 0
    UNSURE = 1
    REPLACES = 2


def verdict_on(*, newer: Likeness, older: Likeness) -> Verdict:
    """Return whether the newer text states another value of the same statement.

    REPLACES: both can't be true at the same time. UNSURE: they could, but probably aren't.
    """
    if newer.sense == older.sense:
        return Verdict.BESIDE
    known = {(frame.kind, frame.key): frame for frame in older.frames}
    found = [
        Verdict.REPLACES if frame.sure or newer.renewed else Verdict.UNSURE
        for frame in newer.frames
        if (frame.kind, frame.key) in known
        and frame.conflicts_with(known[frame.kind, frame.key], renewed=newer.renewed)
    ]
    return max(found, default=Verdict.BESIDE)


def _sense(tokens: list[Token]) -> list[Token]:
    tokens = _without_opening(tokens)
    kept: list[Token] = []
    loose: list[bool] = []
    prepared = False
    for place, token in enumerate(tokens):
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        if _is_left_out(token, after, first=not kept):
            prepared = token.text in lexicon.TIME_PREPOSITIONS
            continue
        if token.kind == NUMBER and prepared:
            token = Token(TIME, token.text)
        free = token.kind in TEMPORAL and (prepared or not kept or loose[-1])
        kept.append(token)
        loose.append(free)
        prepared = False
    return _time_last(kept, loose)


def _without_opening(tokens: list[Token]) -> list[Token]:
    words = tuple(token.text for token in tokens[:2])
    for opening in lexicon.OPENINGS:
        if words[: len(opening)] == opening and len(tokens) > len(opening):
            return tokens[len(opening) :]
    return tokens


def _is_left_out(token: Token, after: Token | None, *, first: bool) -> bool:
    if token.text in _LEFT_OUT:
        # The text consists only of "the", or of "A" as a mark, and that is its content.
        return after is not None
    if token.text in lexicon.COPULAS:
        return not first and after is not None and after.kind == NUMBER
    if token.text in lexicon.TIME_PREPOSITIONS and after is not None:
        return after.kind in TEMPORAL or (after.kind == NUMBER and after.text.isdigit())
    return False


def _time_last(tokens: list[Token], loose: list[bool]) -> list[Token]:
    """Move the time to the end, if there is one: "on Monday we close" is "we close on Monday".

    With two times their places show which words belong to which, so they stay.
    """
    places = [place for place, free in enumerate(loose) if free]
    temporal = [place for place, token in enumerate(tokens) if token.kind in TEMPORAL]
    together = bool(places) and places[-1] - places[0] + 1 == len(places)
    if not together or temporal != places or len(places) == len(tokens):
        return tokens
    times = sorted((tokens[place] for place in places), key=lambda token: (token.kind, token.text))
    return [token for token, free in zip(tokens, loose, strict=True) if not free] + times


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()


def _short_hash(text: str) -> str:
    return _hash(text)[:24]


# Bring the small words of ten languages to English ones, so that one set of rules reads them all.


# Words that mark a value as a new one, wherever they stand.
_RENEWING = (
    "עכשיו|כרגע|מעכשיו|כיום|ahora|agora|теперь|сейчас|тепер|зараз|maintenant|desormais|jetzt|nun|"
    "adesso|ora|الآن|حاليا|סליחה|תיקון|perdon|correccion|desculpe|correcao|простите|извините|"
    "исправление|вибачте|عفوا|تصحيح|pardon|correction|entschuldigung|korrektur|scusa|scusate|"
    "correzione|nuev[oa]|nov[oa]|новый|новая|новое|новий|нова|нове|nouveau|nouvelle|nouvel|"
    "neue[rsn]?|nuov[oa]|الجديد|الجديدة|החדש|החדשה"
)
# By the English phrase: patterns in the other languages. The order counts: longer ones first.
_PHRASES: tuple[tuple[str, str], ...] = (
    ("anymore", "any more|any longer"),
    ("no longer", r"כבר לא|ya no|больше не|більше не|لم نعد|لم يعد|لم اعد|لم تعد"),
    (r"no longer \1", r"(?:ne |n')(\w+)(?: \w+)? plus|nao (\w+) mais|non (\w+) piu"),
    (r"no longer \1", r"kein(?:e|en)? (\w+) mehr"),
    ("no longer", "nicht mehr"),
    (r"not \1", r"(?:ne |n')(\w+) pas"),
    ("not", "nao|nicht|kein|keine|keinen|non|не|ні|لا|ليس|ليست|لسنا"),
    ("changed to", r"הועבר ל|הועברה ל|נדחה ל|נדחתה ל|הוקדם ל|השתנה ל|השתנתה ל|עלה ל|עלתה ל|ירד ל|"
     r"ירדה ל|התעדכן ל|(?:ha )?subi(?:o|do) a|(?:ha )?baj(?:o|ado) a|(?:se )?(?:ha )?cambi(?:o|"
     r"ado) a|"
     r"(?:se )?(?:ha )?pas(?:o|ado) al?|se movio al?|subiu para|baixou para|mudou para|passou para|"
     r"foi remarcad[oa] para|вырос(?:ла)? до|подорожал[ао]? до|поднялась до|снизилась до|"
     r"перенес(?:ен|ена|ено|ли) на|зросла до|подорожчала до|знизилась до|перенес(?:ено|ли) на|"
     r"ارتفع الي|ارتفعت الي|انخفض الي|تغير الي|تم نقله الي|تم نقل(?:ها)? الي|"
     r"(?:est |a )?passee? a|a augmente a|a ete (?:reporte|deplace)e? a[ul]?|"
     r"(?:ist )?(?:auf )?gestiegen auf|wurde verschoben auf|wurde geandert auf|"
     r"e salit[oa] a|e sces[oa] a|e cambiat[oa] in|e stat[oa] spostat[oa] a"),
    # People and places.
    ("i moved to", r"עברתי לגור (?:ב|ל)|עברתי ל|me (?:he )?mud(?:e|ado) a|me traslade a|"
     r"(?:eu )?(?:me )?mudei(?:-me)? para(?: o| a)?|j'ai demenage a|"
     r"(?:io )?mi sono trasferit[oa] a"),
    ("moved to", r"עברה? ל|se (?:ha )?mud(?:o|ado) a|se mudou para(?: o| a)?|mudou-se para(?: o|"
     r" a)?|"
     r"переехала? (?:в|на)|переіха(?:в|ла) (?:до|в|у)|انتقلت? (?:للعيش )?(?:الي|في)|a demenage a|"
     r"si e trasferit[oa] a"),
    (r"moved to \1", r"ist (?:jetzt )?nach ([\w -]+?) (?:um)?gezogen"),
    (r"i moved to \1", r"(?:ich bin|bin ich) nach ([\w -]+?) (?:um)?gezogen"),
    ("i live in", r"אני (?:גר|גרה|מתגורר|מתגוררת) ב|(?:yo )?vivo en|(?:eu )?(?:moro|vivo) em|"
     r"я живу (?:в|на)|(?:я )?живу (?:в|на|у)|(?:انا )?(?:اسكن|اعيش|ساكن|ساكنة) في|"
     r"j'habite (?:a|en|au)|ich (?:wohne|lebe) in|(?:io )?(?:vivo|abito) a"),
    ("lives in", r"גרה? ב|mora em|vive en|живет (?:в|на)|живе (?:в|на|у)|[يت]سكن في|[يت]عيش في|"
     r"habite a|wohnt in|lebt in|(?:vive|abita) a"),
    ("i work at", r"אני עובד(?:ת)? ב|(?:yo )?trabajo en|(?:eu )?trabalho na?o?|я работаю в|"
     r"я працюю (?:в|у)|(?:انا )?اعمل في|je travaille (?:chez|a)|ich arbeite bei|lavoro (?:da|in|"
     r"presso)"),
    ("we moved to", r"עברנו ל|nos (?:hemos mudado|mudamos|trasladamos) a|"
     r"(?:nos )?mudamos(?:-nos)? para(?: a| o)?|"
     r"мы переехали (?:на|в)|ми переіхали (?:на|в|до)|انتقلنا الي|nous avons demenage (?:au|a la|"
     r"a)|"
     r"wir sind umgezogen in die|ci siamo trasferiti (?:in|a)"),
    ("our address is", r"הכתובת שלנו(?: היא)?|nuestra direccion es|"
     r"(?:o )?nosso endereco e|наш адрес|наша адреса|"
     r"عنواننا (?:هو)?|notre adresse est|unsere adresse (?:ist|lautet)|"
     r"il nostro indirizzo e"),
    ("my phone number is", r"(?:מספר )?הטלפון (?:החדש )?שלי(?: החדש)?(?: הוא)?|"
     r"mi (?:numero(?: de telefono)?|telefono) es|(?:o )?meu (?:numero(?: de telefone)?|"
     r"telefone) e|"
     r"мои (?:номер(?: телефона)?|телефон)|мій (?:номер(?: телефону)?|телефон)|"
     r"رقم هاتفي (?:هو)?|رقمي (?:هو)?|mon (?:numero(?: de telephone)?|telephone) est(?: le)?|"
     r"meine (?:telefon|handy)?nummer (?:ist|lautet)|il mio numero(?: di telefono)? e"),
    # Hours and prices.
    ("we close at", r"(?:אנחנו )?(?:נסגרים|סוגרים|נסגור) (?:בשעה|ב)|cerramos a las?|fechamos as|"
     r"(?:мы )?закрываемся в|(?:ми )?(?:зачиняємося|закриваємося) об?|نغلق (?:الساعة|في الساعة)?|"
     r"(?:nous )?fermons a|(?:wir )?schliessen(?: wir)? um|chiudiamo alle"),
    ("we open at", r"(?:אנחנו )?(?:נפתחים|פותחים|נפתח) (?:בשעה|ב)|abrimos as|abrimos a las?|"
     r"(?:мы )?открываемся в|(?:ми )?відчиняємося об?|نفتح (?:الساعة|في الساعة)?|"
     r"(?:nous )?ouvrons a|(?:wir )?offnen(?: wir)? um|apriamo alle"),
    ("the price of", r"המחיר של(?: ה)?|el precio del?(?: la| las| los)?|o preco d[aoe]s?|цена|"
     r"ціна|سعر|"
     r"le prix (?:de la|du|des|de l'|d'une?|de)|der preis (?:fur|von)(?: den| die| das| eine?n?)?|"
     r"il prezzo (?:del|della|di|dello|dell')(?: un| una)?"),
    ("costs", r"cuestan?|custam?|стоит|стоят|коштує|коштують|يكلف|تكلف|coute(?:nt)?|kostet|kosten|"
     r"costano|costa"),
    ("starts", r"empieza|comienza|comeca|начинается|починається|يبدا|تبدا|commence|beginnt|inizia"),
    ("takes", r"tarda|demora|leva|занимает|займає|يستغرق|prend|dauert|richiede"),
    ("is", "es|est|ist|lautet|هو|هي"),
)  # fmt: skip
# A Hebrew preposition is written together with the next word.
_END = r"(?:(?<=\s[בלה])-?|(?!\w))"


def pivot(folded_text: str) -> str:
    """Return a folded text with the small words in English; a long one as it is."""
    if len(folded_text) > MAX_STATEMENT:
        return folded_text
    plain, renewed = _renewing().subn(" ", folded_text)
    folded_text = " ".join(["now", *plain.split()]) if renewed else folded_text
    for english, pattern in _compiled():
        folded_text = pattern.sub(partial(_said, english), folded_text)
    return " ".join(folded_text.split())


def _said(english: str, found: re.Match[str]) -> str:
    """Return the English phrase, with the word that stands inside the other one."""
    return f" {english} ".replace("\\1", next(filter(None, found.groups()), ""))


@cache
def _renewing() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'])(?:{fold(_RENEWING)})(?!\w),?")


@cache
def _compiled() -> list[tuple[str, re.Pattern[str]]]:
    return [
        (english, re.compile(rf"(?<![\w'])(?:{fold(patterns)}){_END}"))
        for english, patterns in _PHRASES
    ]
