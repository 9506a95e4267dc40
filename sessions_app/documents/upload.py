"""Takes in a document that somebody uploads, for a chat or for the business as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from memories_app.documents.facade import IncomingFile, Received, document_receive
from memories_app.models import Visibility
from memoryproject.foundation.audit.events import Actor
from sessions_app.models import Chat


def document_upload(
    *,
    blocks: Iterable[bytes],
    name: str,
    folder: Path,
    max_bytes: int,
    actor: Actor,
    chat: Chat | None = None,
    visibility: str = "",
) -> Received:
    """Take in an uploaded file; reading it is left to a worker, or to the caller. Without
    ``visibility`` it is the chat's where one is given, else the owner's.

    Raises DocumentError where it is too large; ValueError, OSError and DatabaseError as
    document_receive.
    """
    default = Visibility.OWNER if chat is None else Visibility.CHAT
    with IncomingFile(folder, max_bytes=max_bytes) as file:
        for block in blocks:
            file.write(block)
        return document_receive(
            file=file,
            name=name,
            folder=folder,
            visibility=visibility or str(default),
            chat_id=chat.pk if chat else None,
            uploaded_by=actor.name or actor.kind,
            actor=actor,
        )
