"""Errors of merging and splitting contacts; their texts are for staff."""

from __future__ import annotations


class MergeError(Exception):
    """The contacts can't be merged or split; nothing was changed."""


class SeenChangedError(MergeError):
    """Something that the preview showed has changed since: show it again."""
