"""The words that the rules know, in English and Hebrew, in folded form."""

from __future__ import annotations

from memoryproject.foundation.text.characters import fold


def _words(text: str) -> frozenset[str]:
    return frozenset(fold(text).split())


ARTICLES = _words("a an the")
COPULAS = _words("is are am הוא היא הם הן")
ENGLISH_COPULAS = _words("is are am")
# Words that don't change a fact.
FILLERS = _words("please now currently still just actually really btw fyi עכשיו כרגע עדיין פשוט")
# Words that mark a value as a later one. They are ignored where two values are compared.
RENEWALS = _words(
    "sorry correction new updated current instead from-now-on חדש חדשה החדש החדשה מעודכן מעכשיו"
)
OPENINGS = (
    ("remember", "that"),
    ("note", "that"),
    ("remember",),
    ("תזכור", "ש"),
    ("תזכור",),
    ("תזכרי",),
)
# Left out before a time or a day: "on Monday" is "Monday".
TIME_PREPOSITIONS = _words("on at ב")
RANGE_WORDS = _words("to until till עד")
RANGE_STARTS = _words("from between מ")

CURRENCIES = {
    "₪": "₪", "nis": "₪", "ils": "₪", "shekel": "₪", "shekels": "₪", "שח": "₪", "שקל": "₪",
    fold("שקלים"): "₪", "$": "$", "usd": "$", "dollar": "$", "dollars": "$", "דולר": "$",
    fold("דולרים"): "$", "€": "€", "eur": "€", "euro": "€", "euros": "€", "אירו": "€",
    "יורו": "€", "£": "£",
}  # fmt: skip
PERCENT = _words("% percent אחוז אחוזים")
_NUMBERS = "two three four five six seven eight nine ten eleven twelve"
NUMBER_WORDS = {word: str(number) for number, word in enumerate(_NUMBERS.split(), start=2)}
_DAYS = "sunday monday tuesday wednesday thursday friday saturday"
WEEKDAYS = {**{day: day for day in _DAYS.split()}, "shabbat": "saturday"}
HEBREW_WEEKDAYS = {
    fold(word): day
    for word, day in (
        ("ראשון", "sunday"), ("שני", "monday"), ("שלישי", "tuesday"), ("רביעי", "wednesday"),
        ("חמישי", "thursday"), ("שישי", "friday"), ("שבת", "saturday"),
    )
}  # fmt: skip
# After these words the Hebrew names of weekdays mean weekdays, not "second" or "third".
HEBREW_DAY_WORDS = {fold("יום"): "", fold("ביום"): "", fold("ליום"): "ל", fold("מיום"): "מ"}
MONTHS = {
    fold(word): number
    for names in (
        "january february march april may june july august september october november december",
        "ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר",
        "בינואר בפברואר במרץ באפריל במאי ביוני ביולי באוגוסט בספטמבר באוקטובר בנובמבר בדצמבר",
    )
    for number, word in enumerate(names.split(), start=1)
}

# Present-tense verbs. Past events don't exclude each other.
AMOUNT_VERBS = _words(
    """
    cost costs owe owes open opens close closes start starts begin begins end ends finish finishes
    arrive arrives leave leaves depart departs pay pays charge charges earn earns take takes weigh
    weighs worth get gets has have equals expires expire due land lands
    עולה עולים עולות חייב חייבת חייבים נפתח נפתחת פותח פותחת פותחים נסגר נסגרת סוגר סוגרת סוגרים
    מתחיל מתחילה מסתיים מסתיימת נגמר נגמרת מגיע מגיעה יוצא יוצאת משלם משלמת גובה מרוויח שווה
    שוקל לוקח לוקחת
    """
)
# With these verbs a day is a value: a course starts once, but a shop opens every week.
DAY_VERBS = _words(
    """
    start starts begin begins end ends finish finishes arrive arrives leave leaves depart departs
    expires expire due land lands
    מתחיל מתחילה מסתיים מסתיימת נגמר נגמרת מגיע מגיעה יוצא יוצאת
    """
)
# These may stand between a verb and its value.
BETWEEN = _words(
    "el le il am um as a las alle в о об "
    "me us you him her them at on by to in is are לי לנו לך לו לה להם ב ל הוא היא"
)
# Attributes with one value at a time.
ATTRIBUTES = _words(
    """
    price cost fee rate salary rent budget total balance discount phone number email address
    website password code pin ceo cfo cto manager director owner boss landlord deadline birthday
    age height weight size color colour capacity hours schedule status name nickname title role
    job position favorite favourite preferred wife husband spouse location city hometown country
    currency gerente jefe jefa encargado encargada chefe директор менеджер начальник مدير المدير
    directeur directrice gerant chef chefin geschaftsfuhrer direttore direttrice керівник correo
    telefono telefone telefon telefonnummer numero телефон номер رقم precio preco цена ціна سعر
    السعر prix preis prezzo contrasena senha пароль passwort adresse direccion endereco адрес адреса
    عنوان العنوان indirizzo
    מחיר המחיר עלות העלות תעריף התעריף שכר משכורת שכירות תקציב התקציב יתרה היתרה הנחה ההנחה
    טלפון הטלפון מספר אימייל המייל כתובת הכתובת אתר סיסמה הסיסמה קוד הקוד מנכל המנכל מנכלית
    המנכלית מנהל המנהל מנהלת המנהלת בעלים הבוס גיל גובה משקל מידה צבע הצבע שעות סטטוס הסטטוס
    שם השם תפקיד אשתו בעלה עיר יומולדת
    """
)
# A number behind one of these is an identifier, not an amount.
NUMBERED = _words(
    """
    invoice order room table unit apartment flat floor flight ticket number no version gate line
    branch page chapter step lot account
    חשבונית הזמנה חדר שולחן דירה קומה מספר טיסה כרטיס סניף עמוד חשבון
    """
)

NEGATIONS = _words("not no never kein keine nunca jamas никогда لا לא אינו אינה אינם אינן")
# "Not all", "not Dana": the sentence goes on otherwise.
NOT_ALL = _words("not never")
NO_THERE_IS = _words("אין")
THERE_IS = fold("יש")
HELPERS = _words("do does")
# "no longer", "not any more".
NEGATION_TAILS = _words("longer anymore יותר")
ANTONYMS = {
    fold(word): fold(positive)
    for word, positive in (
        ("closed", "open"), ("unpaid", "paid"), ("unavailable", "available"),
        ("forbidden", "allowed"), ("impossible", "possible"), ("inactive", "active"),
        ("invalid", "valid"), ("dislikes", "likes"), ("dislike", "like"),
        ("unmarried", "married"),
        ("סגור", "פתוח"), ("סגורה", "פתוחה"), ("סגורים", "פתוחים"), ("אסור", "מותר"),
    )
}  # fmt: skip
# Next to one of these, "not" doesn't negate the whole statement.
NO_FLIP = _words("only all every both neither nor nobody nothing without רק כל כולם")
# Not a statement of fact, or one of several statements.
NOT_PLAIN = _words(
    """
    if unless when whenever maybe perhaps might may could would should or either also too another
    additional second plus ? except until since before after
    אם אולי כאשר אלא או גם נוסף נוספת אחרי לפני עוד שני שנייה used formerly previously
    cuando quizas tambien otro otra segundo segunda ademas antes excepto salvo
    quando talvez tambem outro outra alem exceto
    когда может возможно тоже также еще другой другая второй вторая кроме раньше
    коли можливо теж також ще інший інша другий друга крім раніше
    عندما ربما ايضا كمان اخر اخرى ثاني ثانية الثاني الثانية الا
    quand peut-etre aussi autre deuxieme second seconde sauf avant
    wann vielleicht auch noch weitere weiterer zweite zweiter anderer andere ausser fruher
    forse anche altro altra secondo seconda tranne prima
    """
)
# They are about the speaker.
FIRST_PERSON = _words(
    """
    i my mine me we our us אני שלי אנחנו שלנו לי לנו yo mi mis nosotros nuestro nuestra eu meu minha
    nosso nossa я мой моя мои мы наш наша мій моє ми انا نحن je j'ai mon ma mes nous notre nos
    ich mein meine wir unser unsere io mio mia noi nostro nostra
    """
)
# Before a condition.
CONDITIONS = _words("si se wenn falls sollte если якщо اذا لو")
# Only the conversation shows which person these refer to.
POINTERS = _words("it this that these those he she they there here זה זאת הוא היא הם הן")
