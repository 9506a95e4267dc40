"""Words by which a statement is told from a question, a condition, an order or a secret.

English, Hebrew, Spanish, Portuguese, Arabic and Russian, with the negations and conditions of
French, German, Italian and Ukrainian. All are in folded form; a word that ends in "*" stands for
all words that begin so.
"""

# ruff: noqa: E501 words
from __future__ import annotations

from dataclasses import dataclass

from memoryproject.foundation.text.characters import fold

# Written together with the word after them: "and", "that", "when", "the" in Hebrew and Arabic.
_JOINED = ("ו", "ש", "כש", "וש", "ה", "و", "ف")


@dataclass(frozen=True)
class Words:
    """A set of words and of beginnings of words."""

    whole: frozenset[str]
    beginnings: tuple[str, ...]

    def __contains__(self, word: str) -> bool:
        if word in self.whole or word.startswith(self.beginnings):
            return True
        return any(
            word[len(joined) :] in self.whole or word[len(joined) :].startswith(self.beginnings)
            for joined in _JOINED
            if word.startswith(joined)
        )


def _words(text: str) -> Words:
    found = fold(text).split()
    return Words(
        frozenset(word for word in found if not word.endswith("*")),
        tuple(word[:-1] for word in found if word.endswith("*")),
    )


NEGATIONS = _words("""
    not no never none except quit quits almost nearly barely hardly כמעט בקושי casi deje quase
    parei deixei почти бросил* перестал* بطلت توقفت formerly previously excepto exceto menos кроме раньше إلا سابقا
    niet geen nooit ikke inte tidak bukan degil yok
    none nothing nobody without cannot dont doesnt isnt arent cant wont didnt wasnt
    havent hasnt hadnt couldnt shouldnt wouldnt werent stopped unable dislike dislikes closed unpaid
    לא אין אינו אינה אינם אינן אינני איני בלי ללא מבלי אסור מעולם לעולם חוץ לשעבר בעבר הפסקתי הפסיק הפסיקה
    nunca jamas sin nada nadie ningun ninguno ninguna tampoco
    nao nem sem ninguem nenhum nenhuma jamais
    لا ليس ليست لست لسنا ليسوا لم لن ما مش مو موش بدون بلا عدم غير مافي ماعندي
    не нет ни без никогда никто ничего нельзя нету нечего
    pas jamais sans aucun aucune rien nicht kein* nie niemals ohne non senza niente mai ні немає
    """)
# The second half of a pair: "neither … nor".
CORRELATIVES = _words("nor neither ni nem ни ні weder noch")
# "No" is "in the" in Portuguese.
PORTUGUESE = _words("""
    nao eu sou moro meu minha meus minhas voce voces estou uma um em trabalho nasci gosto ele ela
    tenho meu filho filha mora trabalha
    """)

ASKING = _words("""
    is are was were do does did can could will would shall should may what when where
    how who whose why which isn't aren't don't doesn't didn't can't
    האם איפה מתי כמה איך למה מדוע מי מה איזה איזו היכן לאן אפשר
    cuando donde cuanto cuanta cuantos cuantas cual cuales quien quienes puedo pueden tienen aceptan
    quando onde quanto quanta quantos quantas qual quais quem posso podem tem voces aceitam
    هل متى أين كم كيف لماذا ليش وين شو ماذا أي مين ايمتى قديش
    когда где куда сколько как кто что какой какая какое какие почему зачем можно есть
    quand combien comment pourquoi est-ce wann warum wieviel wie wo wer
    """)
# Spanish words that ask with their accent only ("como carne" is "I eat meat").
ASKING_BY_ACCENT = frozenset(["qué", "cómo"])
ASKING_ANYWHERE = _words("ли чи")

DOUBTS = _words("""
    if unless whether maybe perhaps possibly probably might wish suppose supposing imagine guess
    doubt think dream dreaming someday חולם חולמת sueno sonho мечта* أحلم يبدو hopefully hope unsure assuming considering kidding joking pretend seems supposedly
    אם אולי ייתכן יתכן נניח הלוואי כנראה חושב חושבת מקווה בתנאי במידה אילו ספק
    quiza quizas ojala supongo creo posiblemente probablemente imagina dudo acaso pensando
    talvez tomara acho suponho possivelmente provavelmente caso oxala duvido
    إذا لو ربما يمكن ممكن احتمال أظن أعتقد ليت ليتني أتمنى لعل بركي
    если может возможно наверное наверно вероятно вдруг кажется думаю надеюсь допустим предположим
    бы якщо wenn falls vielleicht peut-etre forse
    """)
DOUBT_PHRASES = tuple(
    fold(each)
    for each in (
        "not sure", "in case", "let's say", "had i", "as long as", "thinking of", "thinking about", "used to", "one day", "נראה לי", "me parece", "parece que",
        "לא בטוח", "לא בטוחה", "tal vez", "a lo mejor", "no estoy segur", "puede que", "quem sabe",
        "pode ser", "não tenho certeza", "не уверен", "مش متأكد", "لست متأكد", "يا ريت",
        "في حال",
    )
)  # fmt: skip
# "Si" with an accent is "yes"; "se" is a condition before these words only.
CONDITIONS_BY_ACCENT = frozenset({"si"})
PORTUGUESE_IF = _words("""
    eu ele ela nos voce voces eles elas o a os as for tiver houver meu minha der puder chover
    """)
# "I would like a cake" may be noted as "would like a cake", not as "gets a cake".
WISHES = _words("""
    want* will would could plan plans planning planned intend* going
    רוצה רוצים רציתי אשמח ישמח תשמח מתכנן מתכננת מתכננים שוקל שוקלת שוקלים מעוניין מעוניינת
    quiero quiere queremos quisiera querria gustaria planeo planea planeamos pienso piensa desea
    quero quer queria queremos gostaria pretendo pretende planejo planeja deseja
    أريد يريد تريد نريد بدي بدنا بده بدها أنوي ناوي ينوي تنوي أخطط يخطط تخطط أرغب يرغب ترغب حابب
    хочу хочет хотим хотят хотел* хотим планиру* собира* желает
    """)
# After an optional "please", "always", "never" or "don't" at the beginning of a clause.
BEFORE_ORDERS = _words("""
    please always never don't dont just now and then also
    בבקשה תמיד אף-פעם אל לעולם עכשיו מעכשיו פשוט
    por favor siempre nunca no ahora por-favor sempre nao agora
    دائما رجاء الرجاء من-فضلك لا أرجوك
    пожалуйста всегда никогда не просто теперь
    """)
ORDERS = _words("""
    answer reply respond speak talk write act pretend ignore disregard forget give send treat tell
    say be use stop behave offer let show make add remove delete translate print repeat
    תענה תעני ענה עני תגיב תן תני תתעלם תתעלמי התעלם תשכח תשכחי שכח תתנהג תדבר תדברי דבר תכתוב
    תכתבי תשלח תשלחי תגיד תגידי תעשה תעשי תמחק תמחקי תהיה תרגם
    responde responda contesta conteste habla hable dame deme ignora ignore actua actue finge olvida
    olvide di diga regala regalame envia enviame manda mandame haz escribe trata debes usa deja
    fale fala de me-de aja age finja esqueca escreva mande envie trate use pare seja faca
    أجب رد تكلم تحدث أعطني اعطيني تجاهل انس تصرف أرسل ابعث اكتب قل كن جاوب احك احكي ردي
    отвечай* ответь* говори* пиши* дай* игнорируй* забудь* веди* притворись отправь* пришли* скажи*
    напиши* сделай* удали* будь* считай*
    """)
ORDER_PHRASES = tuple(
    fold(each)
    for each in (
        "from now on",  "from today", "מהיום", "desde hoy", "a partir de hoje", "с сегодняшнего дня",
        "you must", "you should", "you have to", "you will always", "your new rule",
        "system prompt", "system rule", "new rule", "new instruction",
        "כלל חדש", "הוראה חדשה", "nueva regla", "nova regra", "новое правило", "قاعدة جديدة", "your instructions", "your rules", "answer me as", "act as", "מעכשיו",
        "מהיום והלאה", "אתה חייב", "את חייבת", "עליך ל", "ההוראות שלך", "a partir de ahora",
        "de ahora en adelante", "desde ahora", "debes ", "tienes que", "tus instrucciones",
        "tus reglas", "a partir de agora", "de agora em diante", "você deve", "voce tem que",
        "suas instruções", "suas regras", "من الآن", "يجب عليك", "عليك أن", "لازم ترد",
        "تعليماتك", "с этого момента", "отныне", "ты должен", "ты должна", "вы должны",
        "твои инструкции", "твои правила", "теперь всегда",
    )
)  # fmt: skip
ASSISTANT = _words("""
    assistant bot chatbot ai העוזר הבוט asistente assistente robot المساعد البوت ассистент* бот
    бота боту помощник*
    """)

# A clause that begins so, without "I", is said to the assistant.
ALWAYS = _words("always never תמיד siempre sempre دائما всегда никогда nunca")
DUTIES = _words("""
    must חייב חייבת debe deve должен должна должны يجب entitled deserves מגיע
    """)

HEARSAY = _words("""
    says said claims claimed heard say told apparently reportedly allegedly rumor rumour according
    אומר אומרת אומרים אמר אמרה אמרו סיפר סיפרה סיפרו שמעתי לטענת לדברי טוען טוענת טוענים
    dice dicen dijo dijeron conto contaron segun oi escuche afirma aparentemente
    diz dizem disse disseram contou contaram falou segundo ouvi parece
    يقول تقول يقولون قال قالت قالوا سمعت حسب يزعم بيقول بتقول بيقولوا حكى حكت
    говорит говорят сказал сказала сказали слышал* рассказал рассказала якобы утвержда* слухи
    """)
HEARSAY_PHRASES = tuple(
    fold(each) for each in ("told me", "tells me", "told us", "is said to", "по словам")
)
OWN_WORDS = frozenset({"i", "я", "yo", "eu"})

FIRST = _words("""
    i i'm i've i'd i'll im ive my me mine myself we we're we've our us ours
    אני לי שלי אנחנו לנו שלנו אותי איתי אצלי אצלנו שמי אנו בי עלי
    yo soy estoy tengo vivo trabajo me mi mis nos nuestro nuestra somos tenemos vivimos naci quiero
    prefiero padezco sufro como necesito nuestros nuestras
    eu sou estou tenho moro trabalho meu minha meus minhas mim nosso nossa temos prefiro quero sofro
    preciso gosto
    أنا عندي لدي لي اسمي عمري نحن عندنا لدينا أعاني أسكن أعمل معي أحب أفضل إني إنني بيتي
    я меня мне мной мой моя мое мои моего моей моему мою моих мы нас нам наш наша наше наши нашей
    нашего
    """)
SECOND = _words("""
    you you're you've you'll your yours youre u ur
    אתם אתה אתן שלכם שלך שלכן לכם אצלכם אצלך
    ustedes usted vosotros vuestro vuestra vuestros vuestras tu tus su sus cierran cerrais abren
    abris tienen teneis venden vendeis ofrecen entregan cobran aceptan hacen
    voce voces seu sua seus suas vosso vossa fecham abrem vendem oferecem entregam cobram aceitam
    أنتم أنت عندكم لديكم لكم عندك تغلقون تفتحون تبيعون توصلون بتسكروا بتفتحوا بتوصلوا
    вы вас вам ваш ваша ваше ваши вашего вашей вашем ваших ты твой твоя твое твои тебя закрываетесь
    открываетесь работаете продаете доставляете предлагаете
    """)
LINKS = _words("""
    that because since know and so but when where what how hear see que porque se sei sabe y e pero
    mas entonces cuando quando знаю что и но а потому поэтому когда أن لأن بما أعرف لكن יודע יודעת כי
    אבל
    """)
BUSINESS = _words("""
    business shop store hours menu parking branch staff horario cardapio estacionamento קופה שעות חניה תפריט
    часы график меню парковк* دوام ساعات restaurant bakery kitchen delivery cafe salon clinic
    עסק חנות מסעדה מאפייה מטבח משלוח משלוחים קונדיטוריה מספרה קליניקה
    negocio tienda restaurante panaderia cocina entrega envio envios pasteleria cafeteria
    loja padaria cozinha entregas confeitaria
    المحل المتجر المطعم المخبز المطبخ التوصيل الصالون محل متجر مطعم
    магазин* ресторан* кафе пекарн* кухн* доставк* салон* кондитерск*
    """)
BENEFITS = _words("""
    discount* חינם הנחה gratis descuento* desconto* مجان* مجانا خصم حسم скидк* бесплатн* refund*
    """)

HEALTH = _words("""
    allerg* cancer diabet* asthma* pregnan* depress* disease* illness sick ill hiv aids surgery
    hospital* celiac coeliac epilep* autis* adhd covid* stroke dementia alzheimer* disab* medicat*
    rehab addict* alcoholic infertil* miscarriage intoleran* tumor tumour chemo* anxiety bipolar
    lactose
    syndrom* heart attack migrain* injur* hepatit* arthrit* kidney* liver medicine wheelchair blind
    deaf fever flu coma overdose seizure* leukem* leukaem* ulcer hernia dialysis insulin
    תסמונת התקף מיגרנה מיגרנות פציעה פצוע פצועה כליות כבד עיוור חירש חום שפעת דיאליזה אינסולין
    sindrome* infart* migran* enxaqueca lesion* hepatit* rinon* gripe fiebre febre demencia alzheimer
    متلازمة نوبة صداع إصابة كلى كبد كفيف حمى زهايمر انسولين
    синдром* приступ* мигрен* травм* гепатит* почк* печен* слеп* глух* грипп* деменц* альцгеймер*
    инсулин* лейкем* онколог*
    אלרגי אלרגית אלרגיה אלרגיים סרטן סוכרת סוכרתי סוכרתית אסטמה הריון בהריון דיכאון מחלה מחלת חולה
    ניתוח מאושפז מאושפזת צליאק צליאקית אפילפסיה אוטיסט* אוטיזם נכה תרופ* שבץ אלצהיימר כימותרפיה
    גידול לקטוז רגיש רגישה
    alerg* asma* embarazada cancer enferm* operaron hospital* vih sida depresi* ansiedad tumor*
    quimio* discapac* celiac* grav* doente doenca* cirurgia remedio* deficien* quimio* lactosa
    حساسية سرطان سكري ربو حامل اكتئاب مريض* مرض السكر مستشفى صرع توحد ورم جلطة السرطان المستشفى
    аллерг* рак рака раком диабет* астм* беремен* депресс* болен больна болеет болеют болезн*
    операци* больниц* целиак* эпилеп* аутис* вич инвалид* опухол* инсульт* инфаркт* непереносим*
    """)
OTHERS = _words("""
    wife husband son daughter mother father mom mum dad brother sister friend neighbour neighbor
    boss colleague child children kid kids baby grandmother grandfather grandma grandpa aunt uncle
    cousin partner girlfriend boyfriend he she they his her their him he's she's employee
    אשתי בעלי בן בת בני בתי בנה אמא אמי אבא אבי אחי אחותי חבר שכן שכנה בוס ילד ילדה ילדים סבתא סבא
    הוא היא דוד דודה חברה שלו שלה תינוק
    esposa esposo marido mujer hijo hija hijos madre padre mama papa hermano hermana amigo amiga
    vecino vecina jefe jefa novio novia abuela abuelo tia tio el-mismo ella bebe nino nina suegra
    filho filha filhos mae pai irmao irma vizinho vizinha chefe namorado namorada avo ele ela sogra
    زوجتي زوجي ابني ابنتي بنتي أمي أبي أخي أختي صديقي صديقتي جاري جارتي هو هي مديري جدتي جدي طفلي
    والدي والدتي
    жен* муж муж* сын* доч* мам* пап* мать матер* отец отц* брат* сестр* друг друга другу подруг*
    сосед* начальни* бабуш* дедуш* он она у-него ребен* дети детей коллег* тещ*
    """)
# Where the words after one of these have a subject of their own, they are a clause.
STARTERS = _words("""
    i i'm i've i'd i'll im my we we're our he she they it the there this that also please
    אני יש שלי אנחנו הוא היא הם זה גר גרה אבל אשתי בעלי הבן הבת
    yo soy estoy tengo vivo trabajo mi mis me somos tenemos es esta pero
    eu sou estou tenho moro trabalho meu minha meus minhas somos temos mas
    أنا عندي لدي اسمي عمري نحن عندنا لكن أسكن أعمل ابني زوجتي
    я у мой моя мое мои мне мы наш наша но живу работаю
    """)
BUT = _words("but אבל אלא pero sino mas porem لكن но а however")
YES_OR_NO = _words("""
    no nope yes yeah ok okay sure לא כן si nao sim لا نعم нет да non oui nein ja
    """)

PASSWORDS = _words("""
    password* passcode* passwd passphrase passwort סיסמ* contrasena* senha senhas парол*
    باسورد mot-de-passe
    """)
PASSWORD_PHRASES = tuple(
    fold(each)
    for each in ("כלמת סוד", "كلمة السر", "كلمة المرور", "الرقم السري", "كلمة سر", "mot de passe")
)
# A number beside one of these is a secret.
PINS = _words("""
    pin pincode pass pwd credentials cvv cvc cvv2 otp token tokens secret קוד-סודי פין clave claves pin-code пин пин-код
    пинкод цвв ключ api-key apikey סודי סודית secreto secreta segredo secreta секрет*
    """)
# A code for one of these is a secret; that of a door or a post office isn't.
CODES = _words("code codes קוד codigo clave код кода رمز كود")
LOCKED = _words("""
    atm security card credit debit bank safe vault verification login alarm sms app
    אבטחה אשראי האשראי כרטיס לכרטיס כספת לכספת בנק לבנק אימות אזעקה לאזעקה
    seguridad tarjeta banco caja alarma verificacion seguranca cartao cofre alarme verificacao
    безопасност* карт* банк* сейф* сигнализац* подтвержден* الأمان أمان البطاقة بطاقتي البنك الخزنة
    التحقق تحقق
    """)
PAYMENT_CARDS = _words("""
    card cards visa mastercard amex iban כרטיס אשראי ויזה tarjeta tarjetas cartao cartoes بطاقة بطاقتي
    البطاقة آيبان карта карты карту картой карте ибан credit debit account cuenta conta счет счета
    счёт حساب
    """)

CURRENCIES = {
    code: _words(words)
    for code, words in (
        ("₪", "nis ils shekel* שקל שקלים שח ש״ח ש''ח шекел* شيكل شيقل شواكل"),
        ("$", "usd dollar* dolar* דולר דולרים доллар* دولار دولارات"),
        ("€", "eur euro* יורו אירו евро يورو"),
        ("£", "gbp quid פאונד"),
        ("₽", "руб* rub"),
        ("R$", "reais"),
        ("%", "percent אחוז אחוזים ciento cento процент* بالمئة بالمية"),
    )
}
NUMBER_WORDS = {
    fold(word): str(number)
    for number, words in enumerate(
        (
            "one אחד אחת uno una um uma واحد один одна",
            "two שניים שתיים שני שתי dos dois duas اثنان اثنين طفلان два две двое двух",
            "three שלוש שלושה tres ثلاث ثلاثة три трое трех",
            "four ארבע ארבעה cuatro quatro أربع أربعة четыре четверо",
            "five חמש חמישה cinco خمس خمسة пять",
            "six שש שישה seis ست ستة шесть",
            "seven שבע שבעה siete sete سبع سبعة семь",
            "eight שמונה ocho oito ثماني ثمانية восемь",
            "nine תשע תשעה nueve nove تسع تسعة девять",
            "ten עשר עשרה diez dez عشر عشرة десять",
            "eleven once onze одиннадцать",
            "twelve doce doze двенадцать",
        ),
        start=1,
    )
    for word in words.split()
}
