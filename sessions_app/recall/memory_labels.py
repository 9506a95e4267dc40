"""Name the client whose memory the owner is shown: in records, and in labels of prompts. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from memoryproject.foundation.text.characters import cut_at_word
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.recall.fact_times import NEWER, SAID_BY, FactTimes

# Who said it, where it isn't a client with a name: the person in the chat, or staff.
THEM, STAFF = "this person", "staff"
# The name in the metadata of a memory that came from another chat than the owner's own.
CLIENT_NAME = "client_name"
# How a prompt introduces a memory, and one with such a name, which follows.
MEMORY = "memory"
CLIENTS_MEMORY = f"{MEMORY} of "
MAX_NAME_LENGTH = 60
# People choose their names: none may pretend to end the label in which it stands.
_MARKS = re.compile(r"[()<>\[\]]")


def name_in_label(name: str) -> str:
    """Return the name of a chat's person as it stands in the label of a memory."""
    words = " ".join(_MARKS.sub(" ", number_shown(name)).split())
    return cut_at_word(words, MAX_NAME_LENGTH) or "a client"


def memory_about(
    kind: str, *, client: str, source: str, is_own: bool, times: FactTimes, newer: Sequence[UUID]
) -> dict[str, Any]:
    """Return the metadata of a recalled memory.

    ``client``: the name to show, or "". ``is_own``: it came from the viewer's own chat. ``newer``:
    those that may replace it.
    """
    about: dict[str, Any] = {"type": kind, **times.as_metadata()}
    if client:
        about[CLIENT_NAME] = name_in_label(client)
    elif is_own or source == STAFF:
        about[SAID_BY] = THEM if is_own else STAFF
    if newer:
        about[NEWER] = newer
    return about
