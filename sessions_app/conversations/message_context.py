"""What a person sees beside a message, in short lines for prompts and summaries.

That is the line that it answers, the ad or product that they come from, a mark of forwarding, an
edit, and the reactions. Each line stands in brackets before the text; what it cites can't end them.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memoryproject.foundation.integrations.lenient import Fields
from memoryproject.foundation.text.characters import cut_at_word
from sessions_app.models.messages import Role

MAX_CITED = 300
# In a stored message's metadata: the line that it answers, as {"role", "text", "sender", "name"}. A
# name has who wrote it in a group. What a provider sends has a role only if it quotes us.
QUOTED = "quoted"


def cited(text: object) -> str:
    """Return a text on one line, cut at MAX_CITED, that can't end the brackets around it."""
    return f"“{_on_one_line(text)}”"


def _on_one_line(text: object) -> str:
    line = " ".join(str(text).split()).translate(str.maketrans("[]“”", "()''"))
    return cut_at_word(line, MAX_CITED)


def quote_of(*, role: str, kind: str, content: str, sender: str, name: str) -> dict[str, str]:
    """Return what a message that answers this one keeps of it in its metadata."""
    text = content if kind in ("text", "interactive", "button") else f"({kind}) {content}"
    named = {"name": name} if name else {}
    return {"role": role, "text": cut_at_word(text.strip(), MAX_CITED), "sender": sender, **named}


def context_lines(metadata: Mapping[str, Any], edited_at: datetime | None) -> list[str]:
    """Return the lines that stand before a person's message, without the reactions to it."""
    return [f"[{line}]" for line in _lines(metadata, edited_at)]


def _lines(metadata: Mapping[str, Any], edited_at: datetime | None) -> Iterator[str]:
    if ad := _shown(metadata.get("referral"), "headline", "body", "source_url"):
        yield f"came from the ad {ad}"
    if product := _shown(metadata.get("referred_product"), "product_retailer_id"):
        yield f"about the product {product}"
    quoted = Fields.of(metadata.get(QUOTED))
    whose = {"assistant": "the assistant’s", "user": "their own"}.get(str(quoted.get("role")))
    if whose == "their own" and (name := _on_one_line(quoted.get("name") or "")):
        whose = f"{name}’s"
    if str(quoted.get("text") or "").strip():
        yield f"in reply to {whose or 'the'} message {cited(quoted['text'])}"
    elif metadata.get("reply_to_id"):
        yield f"in reply to {whose or 'an'} earlier message"
    if metadata.get("frequently_forwarded"):
        yield "forwarded many times: others wrote it"
    elif metadata.get("forwarded"):
        yield "forwarded: somebody else wrote it"
    if edited_at is not None:
        yield "edited since"


def _shown(found: Any, *keys: str) -> str:
    values = [str(value).strip() for key in keys if (value := Fields.of(found).get(key))]
    return cited(" – ".join(values)) if values else ""


def reaction_line(*, role: str, kind: str, content: str, metadata: Mapping[str, Any]) -> str:
    """Return what was put on a message, for the line after it; "" without reactions.

    A reaction is an answer: "Confirm Tuesday?" 👍
    """
    signs = [str(sign) for sign in Fields.of(metadata.get("reactions")).values() if sign]
    if not signs:
        return ""
    whose = "the assistant’s" if role == Role.ASSISTANT else "their own"
    text = cited(content.strip() or f"({kind})")
    return f"[reacted with {' '.join(signs)} to {whose} message {text}]"
