"""Write responses."""

from __future__ import annotations

from rest_framework.renderers import BaseRenderer, JSONRenderer


class Json(JSONRenderer):
    """UTF-8, regardless of the character sets that the client accepts."""

    charset = "utf-8"


class StreamRenderer(BaseRenderer):
    """A form of responses that the view writes: the renderer only lets clients request it."""

    charset = "utf-8"

    def render(
        self,
        data: object,
        accepted_media_type: str | None = None,
        renderer_context: object | None = None,
    ) -> bytes:
        """Render everything that isn't a stream, such as an error, as JSON."""
        return bytes(JSONRenderer().render(data))


class EventStream(StreamRenderer):
    """Server-sent events."""

    media_type = "text/event-stream"
    format = "sse"
