"""Measure how well promises are found, on labelled conversations: ``data/cards/<half>/*.json``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import django

DATA = Path(__file__).with_name("data") / "cards"


def counts_of(session: Mapping[str, Any], *, shows: bool) -> Iterator[str]:
    """Yield a name for each promise that was found, missed or wrong, and for each right day.

    A promise is found if a sentence that holds its quote is. Labels may share a sentence.
    """
    from sessions_app.promises.promise_patterns import promises_in  # noqa: PLC0415 Django must be set up first

    labels = session["labels"].get("promises", [])
    for number, message in enumerate(session["messages"], start=1):
        if message["role"] != "assistant":
            continue
        said_at = datetime.fromisoformat(message["timestamp"].replace("Z", "+00:00"))
        own = [each for each in labels if number in (each["message"], *(each.get("also") or ()))]
        met: list[Any] = []
        for promise in promises_in(message["content"], said_at):
            here = [each for each in own if _overlaps(each["quote"], promise.text)]
            met += here
            yield "right" if here else "wrong"
            if not here and shows:
                print(session["id"], number, "wrong:", promise.text)
            for each in here:
                due = None if promise.due is None else promise.due.isoformat()
                yield "due right" if due == each["due"] else "due wrong"
                if due != each["due"] and shows:
                    print(session["id"], number, f"due {due}, not {each['due']}:", promise.text)
        for each in own:
            yield "found" if each in met else "missed"
            if each not in met and shows:
                print(session["id"], number, "missed:", each["quote"])


def _overlaps(quote: str, sentence: str) -> bool:
    one, other = " ".join(quote.split()), " ".join(sentence.split())
    return one in other or other in one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=DATA / "tuning")
    parser.add_argument("--show", action="store_true", help="print what is wrong")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
    django.setup()
    count: Counter[str] = Counter()
    for path in sorted(options.folder.glob("*.json")):
        count.update(counts_of(json.loads(path.read_text("utf-8")), shows=options.show))
    for name, good, bad in (
        ("precision", "right", "wrong"),
        ("recall", "found", "missed"),
        ("day right", "due right", "due wrong"),
    ):
        whole = count[good] + count[bad]
        print(f"{name}: {count[good] / whole if whole else 0:.2f} ({count[good]} of {whole})")


if __name__ == "__main__":
    main()
