"""Measures how many planted facts survive in the summaries that need no chat model.

    python benchmarks/measure_extracts.py FOLDER [FOLDER ...] [--talk 2000] [--show]

Each FOLDER holds labelled conversations, one JSON file each: ``{"messages", "labels": {"facts":
[{"message", "must"}]}}``. A conversation is summarised as the server does it for a client's
session: every 20 messages the sentences kept so far are merged with the new ones. A fact survives
if all of its ``must`` strings stand in the last summary; white space and digits are folded.
``--talk`` adds other conversations in the same language behind it, up to so many messages; their
facts compete, but aren't counted. Prints a row for each language, and with ``--show`` what is lost.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import unicodedata
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cards_app.rules.extract import Entry, Said, choose_entries, find_entries, render_entries
from cards_app.rules.session_data import Line
from memoryproject.settings_table import OWN_SETTINGS

EVERY = 20


def budget() -> int:
    """Return the room for the summary of a client's session, in characters."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
    import django  # noqa: PLC0415 the settings read the environment

    django.setup()
    from sessions_app.summaries.summarizer import sizes_for  # noqa: PLC0415

    return sizes_for(OWN_SETTINGS["CLIENT_MAX_TOKENS"].default).characters


def summarise(messages: list[dict[str, Any]], longest: int) -> str:
    """Return the last summary of a conversation, made portion by portion."""
    kept: list[Entry] = []
    said = [
        Said(place, Line("client" if each["role"] == "user" else each["role"], each["content"]))
        for place, each in enumerate(messages, start=1)
    ]
    for start in range(0, len(said), EVERY):
        new = find_entries(said[start : start + EVERY])
        kept = choose_entries([*kept, *new], longest=longest)
    return render_entries(kept)


def plain(text: str) -> str:
    """Return the text with equal digits, without differences of white space and case."""
    digits = (str(unicodedata.decimal(each)) if each.isdecimal() else each for each in text)
    return " ".join("".join(digits).casefold().split())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--talk", type=int, default=0)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    files = [path for folder in given.folders for path in sorted(folder.glob("*.json"))]
    talks = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    longest = budget()
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for talk in talks:
        facts = talk["labels"].get("facts") or []
        if not facts:
            continue
        summary = plain(summarise(stretched(talk, talks, given.talk), longest))
        lost = [fact for fact in facts if not all(plain(each) in summary for each in fact["must"])]
        row = rows[talk["language"]]
        row[0] += 1
        row[1] += len(facts) - len(lost)
        row[2] += len(facts)
        if given.show:
            show(talk, lost)
    print(f"summaries of {longest} characters")
    print("language   conversations   facts kept")
    for language, (count, kept, all_facts) in sorted(rows.items()):
        print(f"{language:<10} {count:>13}   {kept} of {all_facts}")


def stretched(
    talk: dict[str, Any], talks: list[dict[str, Any]], length: int
) -> list[dict[str, Any]]:
    """Return the messages with those of other conversations behind them."""
    messages = list(talk["messages"])
    more = [
        each
        for other in talks
        if other["language"] == talk["language"] and other is not talk
        for each in other["messages"]
    ]
    while more and len(messages) < length:
        messages += more[: length - len(messages)]
    return messages


def show(talk: dict[str, Any], lost: list[dict[str, Any]]) -> None:
    print(f"{talk['id']} ({len(talk['messages'])} messages): {len(lost)} lost")
    for fact in lost:
        print(f"    {fact['must']} in: {talk['messages'][fact['message'] - 1]['content']}")


if __name__ == "__main__":
    main()
