"""A session's window, worked out afresh from its messages."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.models import ChatSession

# The last messages always stay in the window, however long they are.
KEEP_LAST = 2
WINDOW_BATCH = 200


def window_recompute(*, session: ChatSession, token_limit: int) -> None:
    """Set ``window_start``, ``total_tokens`` and ``message_counter`` from the stored messages:
    the window holds the newest of them within ``token_limit``, and always the last two.

    Reads from the newest backwards, in batches, only as far as the window goes. ``session``
    is locked by the caller; it is changed, not saved.
    """
    session.window_start = 1
    session.total_tokens = 0
    session.message_counter = 0
    for place, (order_num, tokens) in enumerate(_backwards(session)):
        if place == 0:
            session.message_counter = order_num
        if place >= KEEP_LAST and session.total_tokens + tokens > token_limit:
            # As when it is pruned one by one: the window starts behind what left it.
            session.window_start = order_num + 1
            return
        session.total_tokens += tokens


def _backwards(session: ChatSession) -> Iterator[tuple[int, int]]:
    """The number and the tokens of each message, the newest first."""
    messages = session.messages.order_by("-order_num").values_list("order_num", "tokens")
    batch = list(messages[:WINDOW_BATCH])
    while batch:
        yield from batch
        if len(batch) < WINDOW_BATCH:
            return
        batch = list(messages.filter(order_num__lt=batch[-1][0])[:WINDOW_BATCH])
