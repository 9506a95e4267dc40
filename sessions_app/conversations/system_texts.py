"""Texts that the system itself sends to people.

Those in English and Hebrew stand here; ``languages`` has the other languages' and all new ones.
"""

from __future__ import annotations

from sessions_app.conversations.command_texts import COMMAND_TEXTS, ENGLISH, HEBREW
from sessions_app.conversations.file_texts import FILE_TEXTS
from sessions_app.conversations.phrases import texts_of_languages

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
