"""Recorded conversations that ship with the project, for the demo."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

PROVIDERS = ("cloud", "green")
LANGUAGES = ("en", "he")


def conversation(provider: str, language: str) -> list[dict[str, Any]]:
    """The webhook bodies of one recorded conversation, in order.

    ``provider`` is one of PROVIDERS, ``language`` one of LANGUAGES. Times and ids are those of
    the recording: restamp them. Raises ValueError for another provider or language.
    """
    if provider not in PROVIDERS or language not in LANGUAGES:
        raise ValueError(f"no recorded conversation by {provider!r} in {language!r}")
    folder = resources.files("memoryproject.integrations.loopback") / "payloads"
    text = (folder / f"{provider}_{language}.json").read_text(encoding="utf-8")
    bodies: list[dict[str, Any]] = json.loads(text)
    return bodies
