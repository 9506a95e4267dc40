"""The messages, in the order of people; the story sorts them by time."""

from __future__ import annotations

from memoryproject.staff_site.demo.demo_people import (
    DANA,
    EMMA,
    ERASED,
    LATE,
    LIOR,
    MAYA,
    NETA,
    OMAR,
    OWNER,
    SARA,
    SHIFTS,
    TOM,
    YOSSI,
    Utterance,
)

HEBREW = (
    Utterance(
        DANA,
        17,
        "09:12",
        "בוקר טוב! אתם פתוחים היום?",
        "בוקר טוב דנה! כן, אנחנו פתוחים היום עד 19:00.",
    ),
    Utterance(
        DANA,
        17,
        "09:14",
        "מעולה. יש לכם משהו בלי אגוזים? אני אלרגית לאגוזי מלך",
        "תודה שאמרת. עוגת הגבינה ועוגת השוקולד אצלנו בלי אגוזים. רשמתי את האלרגיה כדי שנשים לב "
        "גם בפעם הבאה.",
    ),
    Utterance(DANA, 17, "09:20", "/remember אני אלרגית לאגוזי מלך"),
    Utterance(
        DANA,
        5,
        "16:02",
        "היי, אפשר להזמין עוגת שוקולד ליום שישי?",
        "בטח! עוגת שוקולד לעשרה אנשים עולה 240 ש״ח ומזמינים יומיים מראש. לשישי זה אפשרי. מה "
        "לכתוב עליה?",
    ),
    Utterance(
        DANA,
        5,
        "16:05",
        "״מזל טוב נועה״, ובלי אגוזים כמובן",
        "רשמתי: עוגת שוקולד לעשרה, ״מזל טוב נועה״, בלי אגוזים. האיסוף בשישי עד 14:30.",
        then="edited:״מזל טוב נועם״, ובלי אגוזים כמובן",
    ),
    Utterance(
        DANA,
        5,
        "16:06",
        "כמה עולה משלוח לנווה שאנן?",
        "משלוח בחיפה עולה 35 ש״ח, ומעל 300 ש״ח הוא חינם.",
        then="reacted:❤️",
    ),
    Utterance(
        DANA,
        1,
        "10:31",
        "תמונה של העוגה מהשנה שעברה, אפשר כזאת?",
        "איזו יפה! אפשר. הציפוי יהיה שוקולד מריר, כמו בתמונה.",
        kind="image",
        file="cake",
    ),
    Utterance(DANA, 1, "10:33", "תודה רבה!! ❤️", "בשמחה, דנה. נתראה בשישי."),
    Utterance(
        YOSSI,
        10,
        "07:41",
        "בוקר אור, שתי חלות ובורקס כרגיל",
        "בוקר טוב יוסי! שתי חלות ובורקס, כרגיל, יחכו לך היום.",
    ),
    Utterance(
        YOSSI,
        10,
        "07:43",
        "",
        "קיבלתי הודעה קולית. אפשר לכתוב לי במילים?",
        kind="voice",
        file="voice",
    ),
    Utterance(
        YOSSI,
        3,
        "07:38",
        "חלות ובורקס, והפעם גם עוגת גבינה",
        "בוקר טוב! שתי חלות, בורקס ועוגת גבינה. סך הכול 118 ש״ח.",
        status="delivered",
    ),
    Utterance(
        MAYA,
        2,
        "13:02",
        "שלום, אפשר לשמור לי שולחן לארבעה מחר בעשר?",
        "שלום מאיה! שמרתי שולחן לארבעה מחר ב־10:00.",
        status="delivered",
    ),
    Utterance(
        MAYA,
        0,
        "07:55",
        "אנחנו נאחר ברבע שעה, זה בסדר?",
        "אין בעיה, השולחן יחכה לכם.",
        fails="unconfirmed",
    ),
    Utterance(LATE, 4, "22:47", "אפשר לדעת אם יש לכם חניה?", fails="missed"),
)
ENGLISH = (
    Utterance(
        EMMA,
        12,
        "11:03",
        "Hi! We are looking for a bakery for our wedding on June 18th.",
        "Congratulations, Emma! We would love to help. How many guests, and where is it?",
    ),
    Utterance(
        EMMA,
        12,
        "11:06",
        "About 90 guests, at the Carmel Forest.",
        "Lovely place. For 90 guests we would suggest a cake in three tiers and two trays of "
        "small pastries.",
    ),
    Utterance(
        EMMA,
        12,
        "11:09",
        "What would that cost, roughly?",
        "The cake is 1,450 shekels, the pastries 620. Delivery within Haifa is free above 300.",
    ),
    Utterance(
        EMMA,
        12,
        "11:15",
        "We like lemon and raspberry better than chocolate.",
        "Noted: lemon sponge with raspberry filling. Shall we prepare a tasting?",
    ),
    Utterance(
        EMMA,
        12,
        "11:18",
        "Yes please! Next Tuesday afternoon?",
        "Tuesday at 16:30 is free. I have put you down for a tasting of three fillings.",
    ),
    Utterance(
        EMMA, 11, "09:40", "Could my mother join the tasting?", "Of course, the more the merrier."
    ),
    Utterance(
        EMMA,
        8,
        "18:22",
        "The tasting was wonderful. We take the lemon one.",
        "So happy to hear that! Lemon and raspberry it is, three tiers for 18 June.",
    ),
    Utterance(
        EMMA,
        8,
        "18:25",
        "What do you need from us now?",
        "A deposit of 30 percent until the end of the month, and the final number of guests two "
        "weeks before.",
    ),
    Utterance(
        EMMA,
        2,
        "15:10",
        "Here is the plan of the hall, the cake table is next to the stage.",
        "Thank you, I have it. Our driver will come at 14:00 and set it up beside the stage.",
        kind="image",
        file="hall",
        then="reacted:❤️",
    ),
    Utterance(
        EMMA,
        1,
        "12:01",
        "One question: is the cake safe for someone with a nut allergy?",
        "The lemon cake has no nuts, but our kitchen works with almonds, so traces are possible. "
        "For a guest with a severe allergy I would rather prepare a separate box.",
    ),
    Utterance(
        EMMA,
        0,
        "08:20",
        "Good to know. Please prepare two separate boxes then.",
        "Done: two separate boxes, marked. Anything else, Emma?",
        status="delivered",
    ),
    Utterance(
        OMAR,
        6,
        "10:15",
        "Morning, can you cater 25 breakfasts for our office on Sunday?",
        "Good morning Omar! Yes: sandwiches, shakshuka and fruit for 25 come to 1,125 shekels.",
    ),
    Utterance(
        OMAR,
        6,
        "10:17",
        "Great. Deliver to Hanamal Street 12 please, we have moved.",
        "Noted: Hanamal Street 12, Sunday at 8:30.",
    ),
    Utterance(
        OMAR,
        0,
        "08:05",
        "Can you send me the invoice again?",
        "Here it is: 1,125 shekels for 25 breakfasts, paid by transfer.",
        fails="failed",
    ),
    Utterance(
        TOM,
        7,
        "14:30",
        "Do you have sourdough today?",
        "Yes, country loaf and rye, from 11:00 until they are gone.",
    ),
    Utterance(TOM, 7, "14:31", "forget it, wrong chat", "No problem!", then="revoked"),
    Utterance(TOM, 0, "08:31", "Is the terrace open this morning?", fails="waiting"),
    Utterance(
        ERASED,
        15,
        "10:00",
        "Hello, do you sell gift cards?",
        "Yes, from 50 shekels, at the counter or by phone.",
    ),
)
OWNERS = (
    Utterance(
        OWNER,
        21,
        "20:10",
        "/remember The flour supplier delivers on Mondays and wants orders until Thursday noon",
    ),
    Utterance(OWNER, 16, "21:00", "/remember The rent goes up by 4 percent in January"),
    Utterance(
        OWNER,
        13,
        "19:30",
        "When does the flour supplier want our order?",
        "Until Thursday noon; he delivers on Mondays.",
    ),
    Utterance(OWNER, 9, "08:00", "/remember The alarm code is 4471"),
    Utterance(OWNER, 8, "08:02", "/forget The alarm code is 4471"),
    Utterance(
        OWNER,
        1,
        "18:40",
        "What do I have to remember for January?",
        "The rent goes up by 4 percent in January.",
    ),
    Utterance(OWNER, 0, "07:30", "/memories"),
)
IN_GROUP = (
    Utterance(LIOR, 4, "18:00", "מי פותח מחר? יש לי מבחן עד עשר", group=SHIFTS),
    Utterance(SARA, 4, "18:03", "I can open. Lior, take the afternoon?", group=SHIFTS),
    Utterance(LIOR, 4, "18:05", "סגור, תודה!", then="reacted:🙏", group=SHIFTS),
    Utterance(
        SARA,
        4,
        "18:10",
        "@Shaked until when are we open on Friday?",
        "On Fridays until 14:30. Sunday to Thursday it is from 7:00 to 19:00.",
        group=SHIFTS,
    ),
    Utterance(LIOR, 2, "06:40", "החלון החדש מוכן", kind="image", file="window", group=SHIFTS),
    Utterance(
        NETA, 1, "19:20", "140 loaves today. Well done, everybody!", then="reacted:🎉", group=SHIFTS
    ),
    Utterance(
        LIOR,
        0,
        "07:05",
        "@Shaked כמה עולה משלוח לכרמל?",
        "משלוח בחיפה עולה 35 ש״ח, ומעל 300 ש״ח הוא חינם.",
        group=SHIFTS,
    ),
    Utterance(SARA, 0, "07:12", "We are out of oat milk, I bring two boxes.", group=SHIFTS),
)
CONVERSATIONS = (*HEBREW, *ENGLISH, *OWNERS, *IN_GROUP)

# Questions of visitors with their answers; each day has some of them.
SMALL_TALK = (
    ("Are you open on Friday?", "Yes, on Fridays until 14:30."),
    ("אתם פתוחים עכשיו?", "כן, היום עד 19:00."),
    ("Do you deliver to the Carmel?", "Yes, within Haifa for 35 shekels."),
    ("כמה עולה עוגת שוקולד?", "עוגה לעשרה אנשים עולה 240 ש״ח, בהזמנה יומיים מראש."),
    ("Is there anything vegan?", "The rye bread, the apple strudel and two of the salads."),
    ("יש לכם קפה נטול?", "כן, וגם חלב סויה ושיבולת שועל."),
    ("Can I book a table for six tomorrow?", "With pleasure. At what time?"),
    ("אפשר להזמין חלות לשישי?", "בטח, כמה לשמור לך?"),
    ("Do you have parking?", "There is a car park behind the building, free after 17:00."),
    ("תודה!", "בשמחה."),
)
PASSERS_BY = (
    ("15550100111", "Lena Fischer"),
    ("972550100112", "אבי מזרחי"),
    ("15550100113", "Priya Nair"),
    ("972550100114", "שירה בן דוד"),
    ("15550100115", "Marco Rossi"),
    ("972550100116", "עומר ביטון"),
    ("15550100117", "Grace Osei"),
    ("972550100118", "תמר גולן"),
    ("15550100119", "Jonas Weber"),
    ("972550100120", "הילה שגב"),
)
