"""Errors of a review."""

from __future__ import annotations


class ReviewError(ValueError):
    """The request is invalid, or not valid any more. The text is for staff."""
