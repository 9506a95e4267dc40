"""Words of trade that mean one thing, across English and Hebrew: a small thesaurus.

It lets "how much is it" find a price and an English question a Hebrew note. A line is a concept:
its name, then the English words, then the Hebrew ones.
"""

from __future__ import annotations

from memoryproject.lib.text.english import stem
from memoryproject.lib.text.normalise import fold

_CONCEPTS = """
debt: owe debt outstanding unpaid overdue debtor; חייב חייבת חייבים חייבות חוב חובות
money: money cash shekel dollar euro nis usd; כסף מזומן שח שקל שקלים דולר דולרים
invoice: invoice bill; חשבונית חשבוניות חשבון
payment: pay paid payment transfer; תשלום תשלומים שילם שילמה שילמו לשלם משלם
price: price cost fee rate pricing; מחיר מחירים עולה עולים עולות עלות תעריף מחירון
discount: discount sale promotion; הנחה הנחות מבצע
opening: open opening; פתוח פתוחה פתוחים פתיחה
closing: close closed closing; סגור סגורה סגורים סגירה
hours: hour hours; שעות שעה
phone: phone telephone mobile cell cellphone; טלפון נייד פלאפון
email: email mail; מייל אימייל דואל
address: address located location street; כתובת רחוב נמצא נמצאת ממוקם
meeting: meeting appointment; פגישה פגישות תור תורים
order: order orders ordered; הזמנה הזמנות הזמין הזמינה
delivery: delivery deliver shipping shipment; משלוח משלוחים
contract: contract agreement; חוזה הסכם
client: client customer; לקוח לקוחה לקוחות
supplier: supplier vendor; ספק ספקית ספקים
employee: employee worker staff; עובד עובדת עובדים
chief: ceo; מנכל מנכלית
owner: owner; בעלים
lawyer: lawyer attorney; עורכדין עוד
accountant: accountant bookkeeper; רואהחשבון רוח
company: company firm corporation business; חברה חברת עסק
software: software; תוכנה
marketing: marketing advertising; שיווק פרסום
haircut: haircut; תספורת תספורות
birthday: birthday born birthdate; יומולדת הולדת
prefer: prefer preference favourite favorite like love; מעדיף מעדיפה אוהב אוהבת
allergy: allergy allergic; אלרגי אלרגית אלרגיה רגיש רגישה
parking: parking park; חניה חנייה
wife: wife; אישה אשתו
husband: husband; בעלה
vacation: vacation holiday; חופשה חופש
deposit: deposit advance; מקדמה פיקדון
warranty: warranty guarantee; אחריות
refund: refund; החזר זיכוי
sunday: sunday; ראשון
monday: monday; שני
tuesday: tuesday; שלישי
wednesday: wednesday; רביעי
thursday: thursday; חמישי
friday: friday; שישי
saturday: saturday shabbat; שבת
"""


def _read() -> dict[str, str]:
    concepts: dict[str, str] = {}
    for line in _CONCEPTS.strip().splitlines():
        name, words = line.split(":")
        english, hebrew = words.split(";")
        concepts.update({stem(word): name for word in english.split()})
        concepts.update({fold(word): name for word in hebrew.split()})
    return concepts


CONCEPTS = _read()
