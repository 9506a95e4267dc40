"""Parts of addresses."""

from __future__ import annotations

from uuid import UUID

from django.urls import register_converter

ID = "id"


class IdConverter:
    """A UUID, in upper case, too: so some languages write it, such as Swift.

    Django's own converter refuses it.
    """

    regex = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"

    def to_python(self, value: str) -> UUID:
        return UUID(value)

    def to_url(self, value: object) -> str:
        return str(value)


register_converter(IdConverter, ID)
