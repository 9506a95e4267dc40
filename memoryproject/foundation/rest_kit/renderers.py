"""How answers are written."""

from __future__ import annotations

from rest_framework.renderers import BaseRenderer, JSONRenderer


class Json(JSONRenderer):
    """UTF-8, whatever the client says about character sets."""

    charset = "utf-8"


class EventStream(BaseRenderer):
    """Server-sent events. The view writes them itself; this one lets clients ask for them."""

    media_type = "text/event-stream"
    format = "sse"
    charset = "utf-8"

    def render(
        self,
        data: object,
        accepted_media_type: str | None = None,
        renderer_context: object | None = None,
    ) -> bytes:
        """What isn't a stream, such as an error, is JSON all the same."""
        return bytes(JSONRenderer().render(data))
