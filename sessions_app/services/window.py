"""The window: the newest messages of a session, as many as the token limit allows."""

from __future__ import annotations

import logging

from django.db.models import RowRange, Sum, Window

from sessions_app.models import ChatSession
from sessions_app.models.messages import Role

logger = logging.getLogger(__name__)

# The last messages always stay in the window, however long they are.
KEEP_LAST = 2


def window_prune(*, session: ChatSession, token_limit: int) -> None:
    """Move the window's start forward until it holds at most ``token_limit`` tokens, or only
    the last messages. Reads the messages that leave the window, not those before or after,
    in two queries. The rows stay; ``session`` is changed, not saved.
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
