"""Why something can't be done in a review."""

from __future__ import annotations


class ReviewError(ValueError):
    """What was asked for makes no sense, or no sense any more. The text is for staff."""
