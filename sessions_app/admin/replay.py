"""Shows a turn's replay record: what was asked, recalled and sent to the chat model."""

from __future__ import annotations

from memoryproject.lib.admin_display import shown_message, shown_table, shown_text
from sessions_app.models import Turn


def question_of(turn: Turn, *, longest: int) -> str:
    """The message that the turn answers, as far as it is still kept."""
    message = turn.message
    if message is None:
        return shown_message(turn.context.get("kind", "text"), turn.unstored_text, longest)
    if message.revoked_at:
        return "deleted by the sender"
    return shown_message(message.kind, message.content, longest)


def prompt_table(turn: Turn) -> str:
    """The messages that went to the chat model, in their order."""
    if not turn.prompt:
        return "No model was asked, or the record of it was dropped to free space."
    rows = (
        (message.get("role", ""), shown_text(str(message.get("content", ""))))
        for message in turn.prompt
    )
    return shown_table(("role", "content"), rows)


def recalled_table(turn: Turn) -> str:
    """What was recalled, best first, and whether it found room in the prompt."""
    if not turn.recalled:
        return "Nothing fitted the message."
    rows = (
        (
            shown_text(str(hit.get("content", ""))),
            hit.get("source", ""),
            "–" if hit.get("score") is None else hit["score"],
            "–" if hit.get("similarity") is None else hit["similarity"],
            "yes" if hit.get("in_prompt") else "no",
        )
        for hit in turn.recalled
    )
    return shown_table(("content", "source", "score", "similarity", "in the prompt"), rows)
