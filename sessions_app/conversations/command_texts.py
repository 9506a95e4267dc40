"""Answers of the system to commands, in English and Hebrew."""

from __future__ import annotations

ENGLISH = "en"
HEBREW = "he"

COMMAND_TEXTS: dict[str, dict[str, str]] = {
    "remembered": {
        ENGLISH: "✅ Remembered: {content}",
        HEBREW: "✅ זכרתי: {content}",
    },
    "remember_replaces": {
        ENGLISH: "replaces: {content}",
        HEBREW: "במקום: {content}",
    },
    "fact_from": {ENGLISH: "from {day}", HEBREW: "החל ב־{day}"},
    "fact_until": {ENGLISH: "until {day}", HEBREW: "עד {day}"},
    "fact_on": {ENGLISH: "on {day}", HEBREW: "ב־{day}"},
    "fact_ended": {ENGLISH: "ended on {day}", HEBREW: "הסתיים ב־{day}"},
    "remember_failed": {
        ENGLISH: "❌ Failed to store memory. Please try again.",
        HEBREW: "❌ שמירת הזיכרון נכשלה. נסו שוב, בבקשה.",
    },
    "argument_too_long": {
        ENGLISH: "❌ That is too long for a command: it has {length} characters, and at most "
        "{most} fit. Please send fewer words.",
        HEBREW: "❌ זה ארוך מדי לפקודה: {length} תווים, ואפשר עד {most}. נא לשלוח פחות מילים.",
    },
    "remember_too_long": {
        ENGLISH: "❌ That is too long to remember as one fact: it has {length} characters, and "
        "at most {most} fit. Please send it in parts.",
        HEBREW: "❌ זה ארוך מדי לעובדה אחת: {length} תווים, ואפשר עד {most}. "
        "שלחו את זה בחלקים, בבקשה.",
    },
    "remember_card": {
        ENGLISH: "❌ That looks like the number of a payment card. I don't store card numbers. "
        "The last four digits are enough to tell your cards apart.",
        HEBREW: "❌ זה נראה כמו מספר של כרטיס אשראי, ומספרי כרטיסים אני לא שומר. "
        "ארבע הספרות האחרונות מספיקות כדי להבדיל בין כרטיסים.",
    },
    "remember_usage": {
        ENGLISH: "Write what I should remember after the command, for example:\n"
        "/remember TestCorp pays within 30 days",
        HEBREW: "כתבו אחרי הפקודה מה לזכור, למשל:\n/remember הספק משלם בתוך 30 יום",
    },
    "help": {
        ENGLISH: "You can simply write to me. I also know these commands:\n"
        "/remember <fact> – I will remember it\n"
        "/memories – what I remember, newest first\n"
        "/search <words> – look for something in it\n"
        "/forget <number, id or words> – I will forget it\n"
        "/export – what I know about you\n"
        "/reset – start the conversation afresh; what I was told to remember stays\n"
        "/help – this list",
        HEBREW: "אפשר פשוט לכתוב לי. אני מכיר גם את הפקודות האלה:\n"
        "/remember <עובדה> – אזכור אותה\n"
        "/memories – מה שאני זוכר, מהחדש לישן\n"
        "/search <מילים> – לחפש בזה משהו\n"
        "/forget <מספר, מזהה או מילים> – אשכח את זה\n"
        "/export – מה אני יודע עליכם\n"
        "/reset – להתחיל את השיחה מחדש; מה שביקשתם שאזכור נשאר\n"
        "/help – הרשימה הזאת",
    },
    "help_without_longterm": {
        ENGLISH: "You can simply write to me. I remember our conversation, but no facts at the "
        "moment. I know these commands:\n"
        "/reset – start the conversation afresh\n"
        "/help – this list",
        HEBREW: "אפשר פשוט לכתוב לי. אני זוכר את השיחה שלנו, אבל כרגע לא עובדות. אני מכיר את "
        "הפקודות האלה:\n"
        "/reset – להתחיל את השיחה מחדש\n"
        "/help – הרשימה הזאת",
    },
    "help_without_memory": {
        ENGLISH: "You can simply write to me. My memory is switched off, so the commands for it "
        "do nothing at the moment.",
        HEBREW: "אפשר פשוט לכתוב לי. הזיכרון שלי כבוי, ולכן הפקודות שלו לא פועלות כרגע.",
    },
    "memories": {
        ENGLISH: "🧠 I remember {count}:\n\n{lines}",
        HEBREW: "🧠 אני זוכר {count}:\n\n{lines}",
    },
    "memories_page": {
        ENGLISH: "Page {page} of {pages}",
        HEBREW: "עמוד {page} מתוך {pages}",
    },
    "memories_next": {
        ENGLISH: " – next: /memories {next}",
        HEBREW: " – הבא: /memories {next}",
    },
    "memories_none": {
        ENGLISH: "I don't remember anything yet. Tell me something with /remember <fact>.",
        HEBREW: "אני עדיין לא זוכר כלום. ספרו לי משהו עם /remember <עובדה>.",
    },
    "memories_no_page": {
        ENGLISH: "There is no such page. There are {pages}: /memories 1",
        HEBREW: "אין עמוד כזה. יש {pages}: /memories 1",
    },
    "mark_public": {ENGLISH: "public", HEBREW: "גלוי לכולם"},
    "mark_pinned": {ENGLISH: "pinned", HEBREW: "נעוץ"},
    "mark_of_chat": {ENGLISH: "from {who}", HEBREW: "מאת {who}"},
    "mark_said": {ENGLISH: "said here on {day}", HEBREW: "נאמר כאן ב-{day}"},
    "search_usage": {
        ENGLISH: "Write what to look for after the command, for example:\n/search TestCorp",
        HEBREW: "כתבו אחרי הפקודה מה לחפש, למשל:\n/search הספק",
    },
    "search_found": {
        ENGLISH: "🔎 I found:\n\n{lines}",
        HEBREW: "🔎 מצאתי:\n\n{lines}",
    },
    "search_none": {
        ENGLISH: "🔎 I found nothing about that.",
        HEBREW: "🔎 לא מצאתי על זה כלום.",
    },
    "search_degraded": {
        ENGLISH: "⚠️ Not everything could be searched just now.",
        HEBREW: "⚠️ לא הכול היה זמין לחיפוש כרגע.",
    },
    "forget_usage": {
        ENGLISH: "Write after the command which memory to forget: its number in the list that I "
        "have just shown you, its id from /memories, or words from it, for example:\n"
        "/forget TestCorp",
        HEBREW: "כתבו אחרי הפקודה מה לשכוח: המספר ברשימה שהצגתי זה עתה, המזהה מתוך /memories, או "
        "מילים מתוכו, למשל:\n/forget הספק",
    },
    "forgotten": {
        ENGLISH: "🗑️ Forgotten ({id}).",
        HEBREW: "🗑️ שכחתי ({id}).",
    },
    "forgotten_number": {
        ENGLISH: "🗑️ Forgotten: number {number} of the list ({id}).",
        HEBREW: "🗑️ שכחתי את מספר {number} ברשימה ({id}).",
    },
    "forget_no_list": {
        ENGLISH: "I can't tell what number {number} is: I have shown you no list of memories in "
        "the last ten minutes. Send /memories or /search first, or write /forget with the id of "
        "the memory or words from it. Nothing was forgotten.",
        HEBREW: "אני לא יודע מה זה מספר {number}: לא הצגתי לכם רשימת זיכרונות בעשר הדקות "
        "האחרונות. שלחו קודם /memories או /search, או כתבו /forget עם המזהה של הזיכרון או עם "
        "מילים מתוכו. לא שכחתי כלום.",
    },
    "forget_not_listed": {
        ENGLISH: "The list that I last showed you has no number {number}: it goes from {first} to "
        "{last}. Nothing was forgotten.",
        HEBREW: "ברשימה האחרונה שהצגתי לכם אין מספר {number}: היא מ-{first} עד {last}. "
        "לא שכחתי כלום.",
    },
    "forget_gone": {
        ENGLISH: "Number {number} of that list is already gone or was replaced. Nothing was "
        "forgotten. /memories shows what I remember now.",
        HEBREW: "מספר {number} ברשימה הזאת כבר נמחק או הוחלף. לא שכחתי כלום. "
        "/memories מראה מה אני זוכר עכשיו.",
    },
    "forget_said": {
        ENGLISH: "Number {number} of that list is a message of this conversation, and /forget "
        "forgets only memories. Nothing was forgotten.",
        HEBREW: "מספר {number} ברשימה הזאת הוא הודעה מהשיחה, ו-/forget שוכח רק זיכרונות. "
        "לא שכחתי כלום.",
    },
    "forget_one_number": {
        ENGLISH: "Please send one number of the list at a time, for example: /forget {number}\n"
        "Nothing was forgotten.",
        HEBREW: "שלחו בכל פעם מספר אחד מהרשימה, למשל: /forget {number}\nלא שכחתי כלום.",
    },
    "forget_none": {
        ENGLISH: "I have no such memory. /memories shows what I remember.",
        HEBREW: "אין לי זיכרון כזה. /memories מראה מה אני זוכר.",
    },
    "forget_public": {
        ENGLISH: "Everybody may know this, so only the business can remove it.",
        HEBREW: "את זה מותר לכולם לדעת, ולכן רק העסק יכול למחוק את זה.",
    },
    "forget_which": {
        ENGLISH: "Which of these should I forget?\n\n{lines}\n\nReply /forget and the number or "
        "the id, for example: /forget {example}",
        HEBREW: "את מה מכל אלה לשכוח?\n\n{lines}\n\nענו /forget והמספר או המזהה, למשל: "
        "/forget {example}",
    },
    "forget_others": {
        ENGLISH: "This comes from another chat. Should I forget it?\n\n{lines}\n\n"
        "Then reply: /forget {example}",
        HEBREW: "זה מצ'אט אחר. לשכוח את זה?\n\n{lines}\n\nאם כן, ענו: /forget {example}",
    },
    "and_more": {
        ENGLISH: "… and {count} more",
        HEBREW: "… ועוד {count}",
    },
    "forget_failed": {
        ENGLISH: "❌ Failed to forget it. Please try again.",
        HEBREW: "❌ לא הצלחתי לשכוח את זה. נסו שוב, בבקשה.",
    },
    "command_failed": {
        ENGLISH: "⚠️ My memory can't be reached just now. Please try again.",
        HEBREW: "⚠️ אין כרגע גישה לזיכרון שלי. נסו שוב, בבקשה.",
    },
    "export": {
        ENGLISH: "📄 What I know about you\n\n{memories}\n\n{history}\n\n{rest}",
        HEBREW: "📄 מה אני יודע עליכם\n\n{memories}\n\n{history}\n\n{rest}",
    },
    "export_memories": {
        ENGLISH: "I was told to remember:\n\n{lines}",
        HEBREW: "ביקשו שאזכור:\n\n{lines}",
    },
    "export_no_memories": {
        ENGLISH: "Nobody told me to remember anything here.",
        HEBREW: "לא ביקשו כאן שאזכור משהו.",
    },
    "export_old": {
        ENGLISH: "Also kept, but no longer used: {count} that were replaced, have ended or wait "
        "to be approved.",
        HEBREW: "נשמרים גם, אבל לא בשימוש: {count} שהוחלפו, שפג תוקפם או שממתינים לאישור.",
    },
    "export_history": {
        ENGLISH: "This conversation: {yours} messages of yours and {ours} of ours, in {sessions} "
        "sessions since {since}.",
        HEBREW: "השיחה הזאת: {yours} הודעות שלכם ו-{ours} שלנו, ב-{sessions} שיחות מאז {since}.",
    },
    "export_no_history": {
        ENGLISH: "No messages of this conversation are stored.",
        HEBREW: "לא נשמרו הודעות מהשיחה הזאת.",
    },
    "export_cards": {
        ENGLISH: "Kept in short of {count} of these sessions:\n\n{lines}",
        HEBREW: "נשמרו בקצרה {count} מהשיחות האלה:\n\n{lines}",
    },
    "export_rest_client": {
        ENGLISH: "This is what belongs to this chat. For a complete copy with all messages, or to "
        "have everything erased, ask the business that you write to here.",
        HEBREW: "זה מה ששייך לצ'אט הזה. לעותק מלא עם כל ההודעות, או למחיקה של הכול, פנו לעסק "
        "שאליו אתם כותבים כאן.",
    },
    "export_rest_godfather": {
        ENGLISH: "This is what belongs to you. /memories also lists what is public and what "
        "clients told. For a complete copy of everything, ask whoever runs this server.",
        HEBREW: "זה מה ששייך לך. /memories מראה גם מה שגלוי לכולם ומה שלקוחות סיפרו. לעותק מלא "
        "של הכול, יש לפנות למי שמנהל את השרת.",
    },
}
