"""Bring the small words of ten languages to English ones, so that one set of rules reads them all.

Only phrases are changed that say how a value belongs to its subject ("cuesta", "wir schließen
um"), that negate, or that mark a value as new. Names, things and values stay as they are.
"""

from __future__ import annotations

import re
from functools import cache, partial

from memories_app.facts.validity import MAX_STATEMENT
from memoryproject.foundation.text.characters import fold

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
