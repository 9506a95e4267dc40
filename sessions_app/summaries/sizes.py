"""Compute the maximum lengths of a summary's parts, in tokens, from the session's token limit."""

from __future__ import annotations

from dataclasses import dataclass

# The number of digests that are folded into a chapter.
FOLD = 6
SHARE = 4
MAX_SIZE = 4_000
MIN_DIGEST = 60


@dataclass(frozen=True)
class Sizes:
    """Maximum lengths in tokens.

    ``whole``: the summary message. ``digest``: the text of one run of messages. ``chapter``: the
    text of FOLD digests. ``passage``: the text between the summary and the history in a prompt.
    """

    whole: int
    digest: int
    chapter: int
    passage: int


def sizes_for(token_limit: int) -> Sizes:
    """Reserve a quarter of the limit for the summary, and the rest for the history.

    The open digests, at most FOLD - 1, then fit whole next to the last chapters.
    """
    whole = min(token_limit // SHARE, MAX_SIZE)
    return Sizes(
        whole=whole,
        digest=max(whole // 8, min(whole, MIN_DIGEST)),
        chapter=max(whole // 5, min(whole, MIN_DIGEST)),
        passage=max(whole // 2, min(whole, MIN_DIGEST)),
    )
