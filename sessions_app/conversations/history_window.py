"""Maintain the window: the newest messages of a session within the token limit."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from django.db.models import RowRange, Sum, Window

from sessions_app.models import ChatSession
from sessions_app.models.messages import Role

logger = logging.getLogger(__name__)

# The last messages always stay in the window, whatever their length.
KEEP_LAST = 2
WINDOW_BATCH = 200


def window_prune(*, session: ChatSession, token_limit: int) -> None:
    """Move the window's start forward until its tokens are within ``token_limit``.

    The last messages always stay. Reads only the messages that leave the window, in two
    queries. The rows stay; ``session`` is changed, not saved.
    """
    if session.total_tokens <= token_limit:
        return
    said = session.messages.exclude(role=Role.SUMMARY).order_by("-order_num")
    kept_from = min(said.values_list("order_num", flat=True)[:KEEP_LAST], default=1)
    leaving = session.messages.filter(order_num__gte=session.window_start, order_num__lt=kept_from)
    sums = leaving.annotate(
        gone=Window(Sum("tokens"), order_by="order_num", frame=RowRange(None, 0))
    )
    enough = sums.filter(gone__gte=session.total_tokens - token_limit).order_by("order_num")
    found = enough.values_list("order_num", "gone").first()
    if found is None:
        # All but the last messages leave.
        found = (kept_from - 1, leaving.aggregate(all=Sum("tokens"))["all"] or 0)
    order_num, tokens = found
    session.window_start = max(session.window_start, order_num + 1)
    session.total_tokens -= tokens
    logger.debug("The messages up to %d left the window of %s.", order_num, session.session_id)


def window_recompute(*, session: ChatSession, token_limit: int) -> None:
    """Set ``window_start``, ``total_tokens`` and ``message_counter`` from the stored messages.

    The window holds the newest of them within ``token_limit``, and always the last two.

    Reads from the newest backwards, in batches, only as far as the window goes. ``session`` is
    locked by the caller; it is changed, not saved.
    """
    session.window_start = 1
    session.total_tokens = 0
    session.message_counter = 0
    said = 0
    for order_num, tokens, role in _backwards(session):
        session.message_counter = max(session.message_counter, order_num)
        if said >= KEEP_LAST and session.total_tokens + tokens > token_limit:
            # Same result as pruning one by one: the window starts after the messages that left
            # it.
            session.window_start = order_num + 1
            return
        session.total_tokens += tokens
        said += role != Role.SUMMARY


def _backwards(session: ChatSession) -> Iterator[tuple[int, int, str]]:
    """Return the number, the tokens and the role of each message, newest first."""
    messages = session.messages.order_by("-order_num").values_list("order_num", "tokens", "role")
    batch = list(messages[:WINDOW_BATCH])
    while batch:
        yield from batch
        if len(batch) < WINDOW_BATCH:
            return
        batch = list(messages.filter(order_num__lt=batch[-1][0])[:WINDOW_BATCH])
