"""Texts that the system itself sends to people.

Those in English and Hebrew stand here; ``languages`` has the other languages' and all new ones.
"""

from __future__ import annotations

from sessions_app.conversations.command_texts import COMMAND_TEXTS, ENGLISH, HEBREW
from sessions_app.conversations.phrases import texts_of_languages

# System texts about documents and recordings, in English and Hebrew.

FILE_TEXTS: dict[str, dict[str, str]] = {
    "document_read": {
        "en": "✅ I read {file}: {size}. Ask me about it.",
        "he": "✅ קראתי את {file}: {size}. אפשר לשאול אותי עליו.",
    },
    "document_known": {
        "en": "I know {file} already: {size}. Ask me about it.",
        "he": "אני כבר מכיר את {file}: {size}. אפשר לשאול אותי עליו.",
    },
    "document_too_large": {
        "en": "I couldn't read {file}: it is larger than {limit} MB. "
        "Please send a smaller file, or a part of it.",
        "he": "לא הצלחתי לקרוא את {file}: הקובץ גדול מ-{limit} MB. "
        "שלחו קובץ קטן יותר, או חלק ממנו.",
    },
    "document_too_many_pages": {
        "en": "I couldn't read {file}: it has more than {pages} pages. Please send it in parts.",
        "he": "לא הצלחתי לקרוא את {file}: יש בו יותר מ-{pages} עמודים. שלחו אותו בחלקים.",
    },
    "document_too_long": {
        "en": "I couldn't read {file}: there is too much text in it. Please send it in parts.",
        "he": "לא הצלחתי לקרוא את {file}: יש בו יותר מדי טקסט. שלחו אותו בחלקים.",
    },
    "document_encrypted": {
        "en": "I couldn't read {file}: it is protected by a password. Please send it without one.",
        "he": "לא הצלחתי לקרוא את {file}: הוא מוגן בסיסמה. שלחו אותו בלי סיסמה, בבקשה.",
    },
    "document_no_text": {
        "en": "I found no text in {file}. If it is a scan, please send it as text, "
        "or write me what matters in it.",
        "he": "לא מצאתי טקסט ב-{file}. אם הוא סרוק, שלחו אותו כטקסט, או כתבו לי מה חשוב בו.",
    },
    "document_empty": {
        "en": "{file} is empty. Please send it again.",
        "he": "הקובץ {file} ריק. שלחו אותו שוב, בבקשה.",
    },
    "document_unknown_type": {
        "en": "I can't read files like {file} yet. I can read PDF, Word (.docx), "
        "text and Markdown files.",
        "he": "אני עדיין לא יודע לקרוא קבצים כמו {file}. אני קורא קובצי PDF, Word (.docx), "
        "טקסט ו-Markdown.",
    },
    "document_damaged": {
        "en": "I couldn't read {file}: the file seems to be damaged. Please send it again.",
        "he": "לא הצלחתי לקרוא את {file}: נראה שהקובץ פגום. שלחו אותו שוב, בבקשה.",
    },
    "document_too_complex": {
        "en": "I couldn't read {file}: it is too complex for me. "
        "Please send it in parts or in another format.",
        "he": "לא הצלחתי לקרוא את {file}: הוא מורכב מדי בשבילי. שלחו אותו בחלקים או בפורמט אחר.",
    },
    "document_unfetched": {
        "en": "I couldn't get {file} from WhatsApp. Please send it again.",
        "he": "לא הצלחתי לקבל את {file} מוואטסאפ. שלחו אותו שוב, בבקשה.",
    },
    "document_not_kept": {
        "en": "I received {file}, but memory is switched off, so I didn't read it. "
        "Please write me what matters in it.",
        "he": "קיבלתי את {file}, אבל הזיכרון כבוי ולכן לא קראתי אותו. כתבו לי מה חשוב בו.",
    },
    "audio_failed": {
        "en": "I couldn't listen to your recording just now. Please write it to me, "
        "or send it again later.",
        "he": "לא הצלחתי להאזין להקלטה כרגע. כתבו לי, בבקשה, או שלחו אותה שוב מאוחר יותר.",
    },
    "audio_silent": {
        "en": "I couldn't hear any words in your recording. Please write it to me.",
        "he": "לא הצלחתי לשמוע מילים בהקלטה. כתבו לי, בבקשה.",
    },
}

COUNTED: dict[str, dict[str, tuple[str, str]]] = {
    "page": {"en": ("1 page", "{count} pages"), "he": ("עמוד אחד", "{count} עמודים")},
    "passage": {"en": ("1 passage", "{count} passages"), "he": ("קטע אחד", "{count} קטעים")},
}

# DocumentError codes without a text of their own.
SAME_TEXT = {
    "too_slow": "too_complex",
    "too_much_memory": "too_complex",
    "missing": "unfetched",
    "unavailable": "unfetched",
}


def document_failure(code: str) -> str:
    """Return the name of the text that explains why a document can't be read."""
    name = f"document_{SAME_TEXT.get(code, code)}"
    return name if name in FILE_TEXTS else "document_damaged"


def counted(thing: str, count: int, language: str) -> str:
    """Return a count in words: "1 page", "12 pages"."""
    versions = COUNTED[thing]
    one, many = versions.get(language, versions["en"])
    return one if count == 1 else many.format(count=count)


TEXTS: dict[str, dict[str, str]] = {
    "memory_disabled": {
        ENGLISH: "Memory system is disabled",
        HEBREW: "מערכת הזיכרון כבויה",
    },
    "reset": {
        ENGLISH: "🔄 Conversation history cleared. Starting fresh!",
        HEBREW: "🔄 היסטוריית השיחה נוקתה. מתחילים מחדש!",
    },
    **COMMAND_TEXTS,
    "memory_unavailable": {
        ENGLISH: "⚠️ Memory system temporarily unavailable. "
        "Your message was processed without memory context.",
        HEBREW: "⚠️ מערכת הזיכרון אינה זמינה כרגע. ההודעה טופלה בלי מה שנשמר בזיכרון.",
    },
    "storage_full": {
        ENGLISH: "⚠️ Cannot save conversation history - system storage full. "
        "Please contact administrator.",
        HEBREW: "⚠️ אי אפשר לשמור את היסטוריית השיחה - שטח האחסון מלא. פנו, בבקשה, למנהל המערכת.",
    },
    "recital": {
        ENGLISH: "No language model is configured, so I can't write a full answer. "
        "Here is what I remember that fits:",
        HEBREW: "לא הוגדר מודל שפה, ולכן אין כאן תשובה מלאה. זה מה ששמור בזיכרון בנושא הזה:",
    },
    "recital_none": {
        ENGLISH: "No language model is configured, so I can only answer from what I remember, "
        "and nothing that I remember fits your message.",
        HEBREW: "לא הוגדר מודל שפה, ולכן אפשר לענות רק ממה ששמור בזיכרון, ולא נמצא שם שום דבר "
        "שמתאים להודעה הזאת.",
    },
    "recital_unavailable": {
        ENGLISH: "I can't reach my language model right now, so this is not a full answer. "
        "Here is what I remember that fits:",
        HEBREW: "אין כרגע גישה למודל השפה, ולכן אין כאן תשובה מלאה. זה מה ששמור בזיכרון בנושא הזה:",
    },
    "apology": {
        ENGLISH: "Sorry, I can't answer right now. Please try again in a few minutes.",
        HEBREW: "סליחה, אני לא מצליח לענות כרגע. נסו שוב בעוד כמה דקות.",
    },
    "limit_hour": {
        ENGLISH: "You have sent many messages in a short time. I can answer again in about an "
        "hour. Your messages are kept, and our team can read them.",
        HEBREW: "נשלחו כאן הרבה הודעות בזמן קצר. אפשר יהיה לקבל תשובות שוב בעוד כשעה. "
        "ההודעות נשמרות, והצוות שלנו יכול לקרוא אותן.",
    },
    "limit_day": {
        ENGLISH: "I can't answer any more today. I can answer again tomorrow. "
        "Your messages are kept, and our team can read them.",
        HEBREW: "אין אפשרות לענות יותר היום. אפשר יהיה לקבל תשובות שוב מחר. "
        "ההודעות נשמרות, והצוות שלנו יכול לקרוא אותן.",
    },
    "opted_out": {
        ENGLISH: "The assistant is off for you: it no longer answers or reads your messages. "
        "To turn it on again, write: {word}",
        HEBREW: "העוזר כבוי עבורך: הוא כבר לא עונה להודעות שלך ולא קורא אותן. "
        "כדי להפעיל אותו שוב, אפשר לכתוב: {word}",
    },
    "opted_in": {
        ENGLISH: "The assistant is on again. To turn it off, write: {word}",
        HEBREW: "העוזר פועל שוב. כדי לכבות אותו, אפשר לכתוב: {word}",
    },
    "received_image": {
        ENGLISH: "I received your picture, but I can't look at pictures yet. "
        "Please tell me in words what it is about.",
        HEBREW: "קיבלתי את התמונה, אבל אני עדיין לא יודע להסתכל בתמונות. כתבו לי במילים במה מדובר.",
    },
    "received_video": {
        ENGLISH: "I received your video, but I can't watch videos yet. "
        "Please tell me in words what it is about.",
        HEBREW: "קיבלתי את הסרטון, אבל אני עדיין לא יודע לצפות בסרטונים. כתבו לי במילים במה מדובר.",
    },
    "received_audio": {
        ENGLISH: "I received your recording, but I can't listen to recordings yet. "
        "Please write it to me.",
        HEBREW: "קיבלתי את ההקלטה, אבל אני עדיין לא יודע להאזין להקלטות. כתבו לי, בבקשה.",
    },
    "received_document": {
        ENGLISH: "I received your document, but I can't read documents yet. "
        "Please write me what matters in it.",
        HEBREW: "קיבלתי את המסמך, אבל אני עדיין לא יודע לקרוא מסמכים. כתבו לי מה חשוב בו.",
    },
    "received_sticker": {
        ENGLISH: "I received your sticker 🙂 Tell me in words how I can help.",
        HEBREW: "קיבלתי את המדבקה 🙂 כתבו לי במילים איך אפשר לעזור.",
    },
    "received_unsupported": {
        ENGLISH: "I received a message that I can't read. Please write it to me as text.",
        HEBREW: "קיבלתי הודעה שאני לא יודע לקרוא. כתבו לי אותה כטקסט, בבקשה.",
    },
    **FILE_TEXTS,
}

for _name, _texts in texts_of_languages().items():
    TEXTS[_name] = {**TEXTS.get(_name, {}), **_texts}

RECEIVED = {
    "image": "received_image",
    "video": "received_video",
    "audio": "received_audio",
    "voice": "received_audio",
    "document": "received_document",
    "sticker": "received_sticker",
}


def text_for(name: str, language: str, **values: str) -> str:
    """Return the text of that name; in English if the language has none."""
    versions = TEXTS[name]
    return versions.get(language, versions[ENGLISH]).format(**values)


def received_text(kind: str, language: str) -> str:
    """Return the answer to a message without readable content."""
    return text_for(RECEIVED.get(kind, "received_unsupported"), language)
