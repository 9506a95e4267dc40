"""Texts that the system itself sends to people.

``languages`` has them, in the file of each language.
"""

from __future__ import annotations

from sessions_app.conversations.phrases import languages, texts_of_languages

TEXTS = texts_of_languages()

# DocumentError codes without a text of their own.
SAME_TEXT = {
    "too_slow": "too_complex",
    "too_much_memory": "too_complex",
    "missing": "unfetched",
    "unavailable": "unfetched",
}

RECEIVED = {
    "image": "received_image",
    "video": "received_video",
    "audio": "received_audio",
    "voice": "received_audio",
    "document": "received_document",
    "sticker": "received_sticker",
}


def document_failure(code: str) -> str:
    """Return the name of the text that explains why a document can't be read."""
    name = f"document_{SAME_TEXT.get(code, code)}"
    return name if name in TEXTS else "document_damaged"


def counted(thing: str, count: int, language: str) -> str:
    """Return a count in words: "1 page", "12 pages"."""
    words = languages().get(language, {}).get("counted") or languages()["en"]["counted"]
    one, many = words[thing]
    return str(one if count == 1 else many.format(count=count))


def text_for(name: str, language: str, **values: str) -> str:
    """Return the text of that name; in English if the language has none."""
    versions = TEXTS[name]
    return versions.get(language, versions["en"]).format(**values)


def received_text(kind: str, language: str) -> str:
    """Return the answer to a message without readable content."""
    return text_for(RECEIVED.get(kind, "received_unsupported"), language)
