"""Responses that the browser saves as a file."""

from __future__ import annotations

from typing import TypeVar

from django.http import HttpResponseBase

Answer = TypeVar("Answer", bound=HttpResponseBase)


def as_download(answer: Answer, file: str) -> Answer:
    """Have the browser save the response under this name, and keep no other copy of it."""
    answer["Content-Disposition"] = f'attachment; filename="{file}"'
    answer["Cache-Control"] = "no-store"
    return answer
