"""A small thesaurus: words of trade with one meaning, across English and Hebrew.

It lets "how much is it" find a price and an English question a Hebrew note. A line is a concept:
its name, then the English words, then the Hebrew ones.
"""

# ruff: noqa: E501 one line a concept
from __future__ import annotations

from functools import lru_cache

from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.english import stem

_CONCEPTS = """
debt: owe debt outstanding unpaid overdue debtor balance; חייב חייבת חייבים חייבות חוב חובות יתרה
money: money cash shekel dollar euro nis usd; כסף מזומן שח שקל שקלים דולר דולרים
invoice: invoice bill; חשבונית חשבוניות חשבון
payment: pay paid payment transfer; תשלום תשלומים שילם שילמה שילמו שילמנו לשלם משלם משלמת משלמים משלמות
price: price cost fee rate pricing tariff charge quote quoted; מחיר מחירים עולה עולים עולות עלות תעריף מחירון הצעתמחיר
discount: discount sale promotion; הנחה הנחות מבצע מבצעים
opening: open opening; פתוח פתוחה פתוחים פתיחה נפתח נפתחת נפתחים
closing: close closed closing shut shuts; סגור סגורה סגורים סגירה נסגר נסגרת נסגרים
hours: hour hours; שעות שעה
phone: phone telephone mobile cell cellphone; טלפון נייד פלאפון
email: email mail; מייל אימייל דואל
address: address located location street; כתובת רחוב נמצא נמצאת ממוקם
meeting: meeting appointment; פגישה פגישות תור תורים
order: order orders ordered; הזמנה הזמנות הזמין הזמינה
delivery: delivery deliver shipping shipment ship ships; משלוח משלוחים
contract: contract agreement; חוזה הסכם
client: client customer; לקוח לקוחה לקוחות
supplier: supplier vendor; ספק ספקית ספקים אספקה
employee: employee worker staff; עובד עובדת עובדים צוות
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
parking: parking park; חניה חנייה חניות חנייה
wife: wife; אישה אשתו
husband: husband; בעלה
vacation: vacation holiday leave away; חופשה חופש חופשות
deposit: deposit advance downpayment; מקדמה מקדמות פיקדון
warranty: warranty guarantee; אחריות
refund: refund refundable reimburse; החזר החזרים החזרה זיכוי להחזיר מחזירים
size: size sizes; מידה מידות גודל
large: large big bigger biggest; גדול גדולה גדולים גדולות
small: small little tiny; קטן קטנה קטנים קטנות
food: food meal eat eats eating; אוכל ארוחה ארוחות לאכול אוכלת אוכלים
drink: drink beverage; משקה משקאות שתייה לשתות
coffee: coffee; קפה
cake: cake; עוגה עוגות
color: color colour; צבע צבעים
website: website site webpage web; אתר אתרים
print: print printer printing; הדפסה להדפיס מדפיסים
design: design designer; עיצוב עיצובים לעצב מעצב מעצבת
deadline: deadline due; דדליין מועד
backup: backup; גיבוי גיבויים
server: server; שרת שרתים
license: license licence; רישיון רשיון רישיונות
renewal: renew renewal renews; חידוש לחדש מתחדש מתחדשת
password: password passcode; סיסמה סיסמא סיסמאות
code: code; קוד קודים
key: key keys; מפתח מפתחות
car: car vehicle; רכב מכונית אוטו
brakes: brake brakes; ברקסים בלמים
garage: garage mechanic; מוסך מוסכניק
repair: repair fix fixed fixing; תיקון תיקונים לתקן תיקנו
broken: broken faulty defective damaged; שבור שבורה מקולקל פגום פגומים
leak: leak leaking drip dripping; נזילה נוזל מטפטף דליפה
water: water; מים
plumber: plumber; אינסטלטור שרברב
electrician: electrician; חשמלאי
renovation: renovation renovate remodel; שיפוץ שיפוצים לשפץ
cleaning: cleaning cleaner cleaners clean; ניקיון ניקוי מנקה מנקים
rent: rent rental; שכירות שכד שוכר שוכרים שוכרת דמישכירות
apartment: apartment flat; דירה דירות
tenant: tenant tenants; דייר דיירים
building: building; בניין בנין בניינים
office: office; משרד משרדים
shop: shop store; חנות חנויות
branch: branch; סניף סניפים
room: room; חדר חדרים
floor: floor; קומה קומות
noise: noise noisy loud; רעש רועש
music: music; מוזיקה מוסיקה
guest: guest guests invitee; אורח אורחים מוזמן מוזמנים סועד סועדים
wedding: wedding marry; חתונה חתונות להתחתן מתחתנים
party: party event; מסיבה אירוע אירועים
gift: gift present; מתנה מתנות
wrap: wrap wrapping wrapped; אריזה לארוז לעטוף עטיפה
return: return returns; החזרה החזרות
cancel: cancel cancellation cancelled; ביטול לבטל ביטלו בוטל
change: change exchange; החלפה להחליף
allowed: allowed permitted permission authorized authorised; מותר מותרת רשאי רשאית רשאים מורשה מורשים
forbidden: forbidden prohibited banned; אסור אסורה אסורים
approve: approve approval approves sign signoff; אישור לאשר מאשר מאשרת אישר
collect: collect pickup fetch; לאסוף איסוף אוסף אוספת אוספים
start: start begin begins beginning; מתחיל מתחילה מתחילים התחלה להתחיל
end: end ends ending expire expires expiry finish; נגמר נגמרת מסתיים מסתיימת סיום סוף פג
late: late delay delayed; איחור איחר איחרו מאחר מאחרים
school: school; ביתספר
kindergarten: kindergarten daycare nursery; גן צהרון
teacher: teacher; מורה מורים
lesson: lesson class; שיעור שיעורים חוג
child: child kid kids children; ילד ילדה ילדים ילדות
son: son; בן
daughter: daughter; בת
mother: mother mom mum; אמא
father: father dad; אבא
doctor: doctor physician; רופא רופאה דוקטור
dentist: dentist; שיניים
vet: vet veterinarian; וטרינר וטרינרית
vaccine: vaccine vaccination shot; חיסון חיסונים
medicine: medicine medication pill pills tablet; תרופה תרופות כדור כדורים
dog: dog; כלב כלבה
cat: cat; חתול חתולה
insurance: insurance policy; ביטוח פוליסה
tax: tax vat; מס מעמ מיסים
bank: bank; בנק
loan: loan mortgage; הלוואה משכנתא
cheque: cheque check; צק שיק שיקים
card: card; כרטיס כרטיסים
receipt: receipt receipts slip; קבלה קבלות
report: report statement; דוח דוחות
salary: salary wage wages; משכורת שכר
shift: shift shifts; משמרת משמרות
manager: manager boss supervisor; מנהל מנהלת
partner: partner; שותף שותפה שותפים
contact: contact; קשר
project: project; פרויקט פרויקטים
quote: estimate quotation; הצעה הצעות
package: package parcel parcels packages; חבילה חבילות
tool: tool; כלי כלים
machine: machine; מכונה מכונות
computer: computer laptop; מחשב מחשבים
flight: flight flights; טיסה טיסות
hotel: hotel; מלון מלונות
travel: travel trip; נסיעה נסיעות טיול
train: train; רכבת
bus: bus; אוטובוס
table: table; שולחן שולחנות
door: door; דלת דלתות
flower: flower flowers florist bouquet bouquets; פרח פרחים זר זרים
bread: bread; לחם לחמים
milk: milk; חלב
dairy: dairy; חלבי חלבית
meat: meat; בשר בשרי
vegetarian: vegetarian; צמחוני צמחונית
vegan: vegan; טבעוני טבעונית
kosher: kosher; כשר כשרה כשרות
gluten: gluten coeliac celiac; גלוטן צליאק
nuts: nut nuts almond almonds; אגוז אגוזים שקדים
monthly: monthly; חודשי חודשית
weekly: weekly; שבועי שבועית
yearly: yearly annual annually; שנתי שנתית
wholesale: wholesale; סיטונאי סיטונאות
minimum: minimum; מינימום לפחות
maximum: maximum limit; מקסימום
year: year; שנה שנתיים
nanny: nanny babysitter; בייביסיטר שמרטפית
application: app application; אפליקציה אפליקציות
commission: commission; עמלה עמלות
buy: buy bought purchase purchasing; לקנות קונים קונה קנינו קניתי רכישה
sell: sell sold selling; למכור מוכר מוכרים מוכרת מכירה
deal: deal agreed; סיכמנו סיכום
spare: spare replacement loaner substitute; חלופי חלופית
glass: glass glasses; כוס כוסות
box: box boxes carton; ארגז ארגזים קופסה קרטון קרטונים
cupboard: cupboard closet cabinet; ארון ארונות
hosting: hosting host hoster; אחסון
campaign: campaign; קמפיין
logo: logo; לוגו
newsletter: newsletter; ניוזלטר
presentation: presentation slides; מצגת מצגות
document: document paper documents papers; מסמך מסמכים
signature: signature signed; חתימה חתום לחתום חתמנו
stock: stock inventory; מלאי
fridge: fridge refrigerator; מקרר מקררים
aircon: aircon conditioner; מזגן מזגנים מיזוג
oven: oven ovens; תנור תנורים
phonecall: call calls; להתקשר מתקשרים שיחה שיחות
neighbour: neighbour neighbor neighbours; שכן שכנה שכנים
sunday: sunday; ראשון
monday: monday; שני
tuesday: tuesday; שלישי
wednesday: wednesday; רביעי
thursday: thursday; חמישי
friday: friday; שישי
saturday: saturday shabbat; שבת
"""


@lru_cache(maxsize=1)
def concepts() -> dict[str, str]:
    """Return the concept of each word: of English ones by their stem, of Hebrew ones as folded."""
    found: dict[str, str] = {}
    for line in _CONCEPTS.strip().splitlines():
        name, words = line.split(":")
        english, hebrew = words.split(";")
        found.update({stem(word): name for word in english.split()})
        found.update({fold(word): name for word in hebrew.split()})
    return found
