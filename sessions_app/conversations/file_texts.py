"""System texts about documents and recordings, in English and Hebrew."""

from __future__ import annotations

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
