"""Render responses in formats other than JSON."""

from __future__ import annotations

from typing import Any

from rest_framework.renderers import BaseRenderer, JSONRenderer

from cards_app.memory_card import Card


class CardData(dict[str, Any]):
    """A card's data as JSON, with a method that renders it as YAML."""

    def __init__(self, card: Card) -> None:
        super().__init__(card.to_dict())
        self.yaml = card.to_yaml()


class CardYaml(BaseRenderer):
    media_type = "application/yaml"
    format = "yaml"
    charset = "utf-8"

    def render(
        self,
        data: object,
        accepted_media_type: str | None = None,
        renderer_context: object | None = None,
    ) -> bytes:
        """Render the card; anything else, such as an error, as JSON."""
        if isinstance(data, CardData):
            return data.yaml.encode()
        return bytes(JSONRenderer().render(data))


class TranscriptText(BaseRenderer):
    media_type = "text/plain"
    format = "txt"
    charset = "utf-8"

    def render(
        self,
        data: object,
        accepted_media_type: str | None = None,
        renderer_context: object | None = None,
    ) -> bytes:
        """Render the transcript; anything else, such as an error, as JSON."""
        if isinstance(data, dict) and "text" in data:
            return str(data["text"]).encode()
        return bytes(JSONRenderer().render(data))
