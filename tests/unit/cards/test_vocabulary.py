"""Entities and keywords by seed 001's tables."""

from __future__ import annotations

from hypothesis import given, settings

from cards_app.rules.card import extract_card
from cards_app.rules.session_data import Line
from memoryproject.foundation.text.characters import is_mark
from tests.tables import table
from tests.unit.cards.texts import ANY_LINES, said


def entities(*contents: str) -> list[str]:
    return list(extract_card(said(*contents)).entities)


def keywords(*contents: str) -> list[str]:
    return list(extract_card(said(*contents)).keywords)


@table(
    ("text", "expected"),
    [
        ("We use Docker and Redis.", ["Docker", "Redis"]),
        ("Docker is fine. Redis, too.", []),
        ("Docker is fine. I like Docker.", ["Docker"]),
        ("PostgreSQL is fine. AWS is, too.", ["PostgreSQL", "AWS"]),
        ("yes, I've seen That and This, It and They", []),
        ("ask Al and Bob", ["Bob"]),
        ("Dana's and O'Brien's bills, and Bob’s", ["Dana", "O'Brien", "Bob"]),
        ("- Deploy it\n- Restart it\n1. Check it", []),
        ("👍 Great, and “Well done”", []),
        ("ask Élodie, Žofia and Иван", ["Élodie", "Žofia", "Иван"]),
        ("I like E\u0301lodie", ["E\u0301lodie"]),
        ("see https://Shop.example/Docker now", []),
        ("call Dana at [phone], [Email] or +1 555 010 0123", ["Dana"]),
        ("the Tel-Aviv office", ["Tel-Aviv"]),
        ("a key AAAA" + "b" * 60, []),
    ],
)
def test_entities(text: str, expected: list[str]) -> None:
    assert entities(text) == expected


@table(
    ("text", "expected"),
    [
        # after a title, a word such as "called", or what kind of place or firm it is
        ("ד\"ר רבינוביץ אמר לגב' שטרן", ["רבינוביץ", "שטרן"]),
        ("קוראים לי שחר ואני מחברת אלקטרוניקס", ["שחר", "אלקטרוניקס"]),
        ("גר ברחוב הרצל, ליד העיר הזאת", ["רחוב הרצל"]),
        ("עורכת הדין פורת והרב קוק", ["פורת", "קוק"]),
        ("חברת ביטוח, חברת החשמל, חברה גדולה וקפה מר מאוד", []),
        # behind prefix letters, once it is known
        ("עו״ד זילבר. זילבר יודע, תן לזילבר ושזילבר יבוא", ["זילבר"]),
        # in quotation marks
        ("הזמנו שולחן ב״אלומה״", ["אלומה"]),
        ("כתוב שם ״תודה״", []),
        # acronyms, but not abbreviations
        ('בצה"ל ובארה"ב, עולה 3 ש"ח לפי הדו"ח של המנכ"ל', ['צה"ל', 'ארה"ב']),
        # names that are hardly anything else
        ("ודנה נסעה מאשדוד לחיפה עם יוֹסִי", ["דנה", "אשדוד", "חיפה", "יוסי"]),
        ("אני גר בתל אביב ועובד בבאר שבע", ["תל אביב", "באר שבע"]),
        ("משרה טובה, שמשה נשברה, לחיים נתן דוד", []),
        # other scripts inside of Hebrew
        ("Docker עובד מצוין, תשאל את Bob", ["Docker", "Bob"]),
        ("docker עובד", []),
        ("Thanks דנה!", ["דנה"]),
        ("Please תבדוק", []),
        ("Hello, מה קורה", []),
        ("Yes בטח", []),
        ("Please תבדוק. אמרתי ל-Please", []),
    ],
)
def test_entities_in_hebrew(text: str, expected: list[str]) -> None:
    assert entities(text) == expected


@table(
    ("text", "expected"),
    [
        # several words are one name; many together are a list
        ("We stay at Garden View, near Rio de Janeiro", ["Garden View", "Rio de Janeiro"]),
        ("Garden View is free", ["Garden View"]),
        (
            "we met Ana María Ruiz Peña of the Bank of America",
            ["Ana María Ruiz Peña", "Bank of America"],
        ),
        ("ask Ami Bel Cid Dov Eli Fay", ["Ami", "Bel", "Cid", "Dov", "Eli", "Fay"]),
        ("Marta de Haifa llamó, y Ana y Luis", ["Marta", "Haifa", "Ana", "Luis"]),
        # titles and what the sentence starts with are left out
        ("Hello Dana, I met Dr. Cohen and Mrs Smith", ["Dana", "Cohen", "Smith"]),
        ("Hola buenas, gracias Sra. García. Gracias Luis", ["García", "Luis"]),
        ("Obrigada, Dona Lúcia! Combinado: Paulo vem", ["Lúcia", "Paulo"]),
        ("Name: Qwenna Zed\nשם: זוהרית\nTotal: Five", ["Qwenna Zed", "זוהרית"]),
        ("Qwenna says yes. Delivery was late", ["Qwenna"]),
        # no names
        ("URGENT! I'm SO happy, send the PDF on Monday in June, OK?", []),
        ("PLEASE CALL ME NOW", []),
        ("Can You Send Me The Invoice", []),
        ("I speak English, pay in Euros, and my Order is late", []),
        ("o preço é 5 Reais na Segunda, en Español el Lunes", []),
        ("run `Fetch All` and\n```\nTypeError: No Name\n```\nthen ask Bob", ["Bob"]),
        # lower case, where the gazetteer and the words around make it certain
        ("my name is dana levi and i live in haifa", ["Dana Levi", "Haifa"]),
        ("me llamo juan pérez, vivo en madrid", ["Juan Pérez", "Madrid"]),
        ("meu nome é joão e moro em são paulo", ["João", "São Paulo"]),
        ("меня зовут анна, живу в нижнем новгороде", ["Анна", "Нижний Новгород"]),
        ("my husband tom and imelda, not mr smith", ["Tom", "Imelda", "Smith"]),
        ("the parcel from zara, we move to slack", ["Zara", "Slack"]),
        ("i slack off, se va a clara tina rosa", []),
        ("may i ask grace, will mark bill me in march", []),
        # names that stand first, and acronyms of files and devices
        ("Jonah was late, and Priyanka paid", ["Jonah", "Priyanka"]),
        ("ask Айгерим about the BMP, not the PNG or the SVG", ["Айгерим"]),
        ("شفت مباراة الأهلي؟", ["الأهلي"]),
        # Russian names in the first case
        (
            "Пишу Марии Петровой из Москвы, Игорю, Елене Викторовне и Сергею Палычу",
            ["Мария Петрова", "Москва", "Игорь", "Елена Викторовна", "Сергей Палыч"],
        ),
        ("Здравствуйте! Гостиница «Белый Причал», Суздаль", ["Белый Причал", "Суздаль"]),
        ("Передала Равшану, звонил Громову и Ульяне", ["Равшан", "Громов", "Ульяна"]),
        # Arabic
        ("زوجتي منيرة طلبت من أمازون", ["منيرة", "أمازون"]),
        ("اسمي أحمد وأسكن في تل أبيب", ["أحمد", "تل أبيب"]),
        ("العنوان شارع الملك فهد، لليلى والأستاذة هبة", ["شارع الملك فهد", "ليلى", "هبة"]),
        ("صباح الخير، أهلا بك في مطعم الزيتونة", ["مطعم الزيتونة"]),
        ("قابلته في مطعم السنابل، وفي مستشفى خاص", ["مطعم السنابل"]),
        ("شكرا جزيلا يا غالي، الجو جميل", []),
        # Hebrew
        ("תור למרפאת שיניים, בשכונת נווה צדק, במוסך אבו חצירא", ["נווה צדק", "מוסך אבו חצירא"]),
        ("כאן מאפיית לחם טוב, מדברת שיר", ["שיר"]),
        (
            "פגשתי את שירן כהן ואת חיים לוי ברחוב אבן גבירול",
            ["שירן כהן", "חיים לוי", "רחוב אבן גבירול"],
        ),
        # no names: codes of places, occupations, words that only look like names in their script
        ("we're at Gate B22 or E17, the A54 and the S3X", ["S3X"]),
        ("Юрист говорит, что Олег прав", ["Олег"]),
        ("معك حق، لدينا موعد، الدكتور قال لا", []),
        ("תבואי עם שיער יבש, ברחוב ואני לא רואה", []),
        ('ד"ר אמר שנועם בן שש, תשמ"ו, נדל"ן ומק"ט', ["נועם"]),
    ],
)
def test_names_of_any_language(text: str, expected: list[str]) -> None:
    assert sorted(entities(text)) == sorted(expected)


@table(
    ("text", "expected"),
    [
        # quotation marks around several words, but not around what somebody says
        ('יש \'גן השקמה\', ומ"בצק ואש" הזמנו ל"קו המים"', ["גן השקמה", "בצק ואש", "קו המים"]),
        ('היא אמרה "חיוך לבן", ואז: "למה ככה"', []),
        ("عندنا «سحابة النيل» و«هوستايا»، وقال «بيت كبير»", ["سحابة النيل", "هوستايا"]),
        ('зал "Дуб", полис «Тихий дом», "так и быть". Он сказал "Ясень"', ["Дуб", "Тихий дом"]),
        # who speaks, and who is called
        ("היי, זאת שקד", ["שקד"]),
        ("היי, זה שקד מהדירה", ["שקד"]),
        ("זה שקד טעים", []),
        ("שקד! איזה כיף", ["שקד"]),
        ("שלום, מדברת קשתית, בוקר טוב", ["קשתית"]),
        ("שלום מיכאלה, כאן דנה", ["מיכאלה", "דנה"]),
        ("شقد، مساء النور كريم", ["كريم"]),
        ("Сонь, ты где", ["Сонь"]),
        ("Вера, вы где", ["Вера"]),
        ("Вера людей в это сильна", []),
        # a family name, a second name, a relative or what the person does
        ('תור לד"ר שני אלבז', ["שני אלבז"]),
        ("גל ודנה כאן", ["גל", "דנה"]),
        ("אמא של שיר כאן", ["שיר"]),
        ("שחר הציעה הצבעה", ["שחר"]),
        ("בן דוד שלי", []),
        # prefix letters: no people after "ב", articles before firms, "ו" twice
        ("ולגבי החורף, היה שמח בגילי ובעומר", []),
        ("הטויוטה בחניה, ואפשר בביט", ["טויוטה", "ביט"]),
        ("طلب الكامري وسافر الهند", ["كامري", "الهند"]),
        ("ויכולים גם בלי. טיסה לוורשה", ["ורשה"]),
        # of a place that is named, not of one that is said to be for something
        ("הרכב במוסך האחים סבג", ["מוסך האחים סבג"]),
        ("מלון ללילה ופיצה לדנה", ["דנה"]),
        ("البواب في مسجد النخيل", ["مسجد النخيل"]),
        # verbs behind a title, and greetings
        ("والدكتورة تسأل، يا مدام متزعليش", []),
        ("أهلا بيك، أهلا بحضرتك", []),
        ("القسم العلمي", []),
        ("הקופה אוחנה", []),
        ("זה לשיר. תגיד לשי", ["שי"]),
        # Russian words with the stem of a name, at the start of a sentence
        ("Коллеги, жена хочет. Жена говорит. Смелое решение", []),
        ("Об этом потом. Совет хороший, об этом тоже", []),
        ("Хорошо) Чистка готова", []),
        ("Лёва пришёл. Предупрежу Инну", ["Лёва", "Инна"]),
        ("Свободны два места. Света дома", ["Света"]),
        ("это я дарю вам", []),
        ("Зоя Петровна тут? Напишу Зое Петровне", ["Зоя Петровна"]),
    ],
)
def test_names_by_what_stands_beside_them(text: str, expected: list[str]) -> None:
    assert sorted(entities(text)) == sorted(expected)


@table(
    ("text", "expected"),
    [
        ("ученик Романа Львовича", "Роман Львович"),
        ("папа Миши Грачёва", "Миша Грачёв"),
        ("видел Ольгу Петрову", "Ольга Петрова"),
        ("написать Зое Петровне", "Зоя Петровна"),
        ("привет от Тимура", "Тимур"),
        ("это для Камилы", "Камила"),
        ("группа у Алсу", "Алсу"),
        ("офис на Кленовой", "Кленовая"),
        ("мы с Заречной", "Заречная"),
        ("рынок на Кирпичной", "Кирпичная"),
        ("живут в Великом Новгороде", "Великий Новгород"),
        ("дела в Бразилии", "Бразилия"),
    ],
)
def test_russian_names_are_shown_in_the_first_case(text: str, expected: str) -> None:
    assert entities(text) == [expected]


@table(
    ("asked", "answer", "expected"),
    [
        ("What name shall I put it under?", "Qwenna. thanks", ["Qwenna"]),
        ("What name is it under?", "gallagher", ["Gallagher"]),
        ("What name is it under?", "no idea", []),
        ("על שם מי ההזמנה?", "זוהרית", ["זוהרית"]),
        ("ممكن الاسم؟", "شهيرة الفلاني، بعد الظهر", ["شهيرة الفلاني"]),
        ("¿Me dices tu nombre?", "No lo sé", []),
        ("Shall we start?", "Maybe. thanks", []),
    ],
)
def test_the_answer_to_a_question_for_a_name(asked: str, answer: str, expected: list[str]) -> None:
    assert entities(asked, answer) == expected


@table(
    ("texts", "expected"),
    [
        (("Dana called", "it was Dana Levi", "dana will call"), ["Dana Levi"]),
        (("ask Lucía Sanz or LUCIA", "lucía says yes"), ["Lucía Sanz"]),
        (("we know Dana Levi and Dana Cohen", "ask Dana"), ["Dana Levi", "Dana Cohen", "Dana"]),
        (("the Haifa Bay mall", "we are in Haifa"), ["Haifa Bay", "Haifa"]),
        (("דיברתי עם דנה לוי", "תחזרו לדנה"), ["דנה לוי"]),
        (("the Menu please", "which menu? that menu"), []),
    ],
)
def test_one_person_is_one_name(texts: tuple[str, ...], expected: list[str]) -> None:
    assert entities(*texts) == expected


def test_a_hebrew_name_counts_in_all_its_forms() -> None:
    assert entities("חיפה וירושלים", "בירושלים", "לירושלים או לחיפה") == ["ירושלים", "חיפה"]


def test_frequent_entities_come_first_then_the_first_seen() -> None:
    text = "we know Cy and Dan and Eve and Dan and Fay. Eve left. we know Gil"
    assert entities(text) == ["Dan", "Eve", "Fay", "Gil"]


def test_an_entity_may_be_proved_by_another_message() -> None:
    assert entities("Docker is fine.", "we have Docker") == ["Docker"]


def test_at_most_ten_entities_and_keywords() -> None:
    words = [f"Name{letter}" for letter in "abcdefghijkl"]
    assert entities("see " + " ".join(words)) == words[:10]
    assert keywords(" ".join(words)) == [word.lower() for word in words[:10]]


@table(
    ("text", "expected"),
    [
        ("Deploy DEPLOY deploy other table", ["deploy", "table"]),
        ("about their other would table", ["table"]),
        ("blue-green zero-downtime", ["green", "downtime"]),
        ("we're they'll couldn't client's", ["client"]),
        ("four five5 12345 1234567", ["five5"]),
        ("niño\u0301 mañana", ["mañana"]),
        ("שלום לכולם, שִׁלְטוֹן ושלטון", ["שלטון", "לכולם"]),
        ("החשבונית בחשבונית ולחשבונית, והמקדמה", ["החשבונית", "בחשבונית", "ולחשבונית", "והמקדמה"]),
        ("ולחשבונית והחשבונית, חשבונית ומקדמה, מקדמה", ["חשבונית", "מקדמה"]),
        ("שאנחנו והייתה כשהייתי להתראות ושולחן", ["ושולחן"]),
        ("write to dana@shop.example or https://shop.example/table", ["write"]),
        ("[phone] [email] phones", ["phones"]),
        # words of grammar and greeting in further languages, but none of English
        ("también quiero la crema, porque gracias", ["crema"]),
        ("então você também quero caixas", ["caixas"]),
        ("здравствуйте, сколько очень машина", ["машина"]),
        ("والله ممكن هذه الخزاين", ["الخزاين"]),
        ("comment, favor and entry", ["comment", "favor", "entry"]),
        ("straße STRASSE", ["straße", "strasse"]),
        ("max_tokens _table_", ["max_tokens", "table"]),
        ("x" * 60, []),
    ],
)
def test_keywords(text: str, expected: list[str]) -> None:
    assert keywords(text) == expected


def test_one_word_in_two_normal_forms_is_one_keyword() -> None:
    assert keywords("manana table mañana man\u0303ana") == ["mañana", "manana", "table"]


# What holds for the card of any conversation.


@given(ANY_LINES)
@settings(deadline=None)
def test_words_are_whole(lines: list[Line]) -> None:
    card = extract_card(lines)
    for word in card.entities + card.keywords:
        assert word[0].isalpha()
        # "Tel-Aviv" and "Marks & Spencer" are one name.
        whole = word.replace(" & ", "").replace(" ", "").replace("-", "").replace("־", "")
        assert all(
            each.isalnum() or is_mark(each) or each in "_'’ʼ׳\"״”\u200c\u200d" for each in whole
        )
    assert len(set(card.keywords)) == len(card.keywords)
    assert len(set(card.entities)) == len(card.entities)
