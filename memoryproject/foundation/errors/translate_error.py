"""Translate stored errors: ``{{ text|translate_error }}`` in templates."""

from __future__ import annotations

from django import template
from django.utils.translation import gettext

from memoryproject.foundation.errors.catalogue import CATALOGUE
from memoryproject.foundation.errors.stored_errors import ErrorText

register = template.Library()


@register.filter
def translate_error(text: str) -> str:
    """Return the text in the active language; a text without a code is returned unchanged."""
    if not isinstance(text, ErrorText):
        return text
    params = {
        name: translate_error(value) if isinstance(value, str) else value
        for name, value in text.params.items()
    }
    return gettext(CATALOGUE[text.code]) % params
