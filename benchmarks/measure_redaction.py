"""Measures what redaction misses and what it removes too much: run from the project's root.

    python benchmarks/measure_redaction.py [FILE ...] [--show]

A file is a list of {"language", "text", "planted": [{"class", "text"}], "keep": [text]}. A planted
span leaks if four or more of its letters or digits in a row stay readable. A false alarm is a span
of ``keep`` that changed. Prints both by class and by language, and the time of a line of a log;
``--show`` also prints each.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import timeit
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from memoryproject.foundation.redaction.redact import redact

TUNING = Path(__file__).parent / "data/redaction/tuning.json"
READABLE = 4
LINE = "The webhook of chat 3f2b8c1e-0000-4000-8000-000000000000 was handled in 35 ms."


def leaks(planted: str, text: str, clean: str) -> bool:
    """Return whether four or more of its letters or digits in a row are still there.

    Marks between them don't count, and what also stands outside of the span is no leak.
    """
    outside, left = _compact(text.replace(planted, "[x]", 1)), _compact(clean)
    letters = _compact(planted)
    pieces = {letters[at : at + READABLE] for at in range(len(letters) - READABLE + 1)}
    return any(left.count(piece) > outside.count(piece) for piece in pieces)


def _compact(text: str) -> str:
    return re.sub(r"[^\w|]|_", "", re.sub(r"\[[a-z]+\]", "|", text))


def findings(entries: list[dict[str, Any]]) -> Iterator[tuple[str, str, str, bool, str]]:
    """Yield the language, what was tried, the span, whether it is wrong, and the clean text."""
    for entry in entries:
        language, text = entry["language"], entry["text"]
        clean = redact(text)
        for each in entry["planted"]:
            wrong = leaks(each["text"], text, clean)
            yield language, f"leaks: {each['class']}", each["text"], wrong, clean
        outside = text
        for each in entry["planted"]:
            outside = outside.replace(each["text"], " ", 1)
        for kept in entry["keep"]:
            wrong = clean.count(kept) < outside.count(kept)
            yield language, "false alarms", kept, wrong, clean


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="*", default=[TUNING])
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    entries = [each for file in options.files for each in json.loads(file.read_text("utf-8"))]
    wrong: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    for language, what, span, is_wrong, clean in findings(entries):
        kind = what.partition(":")[0]
        for row in {what, kind, f"{kind}, {language}"}:
            tried[row] += 1
            wrong[row] += is_wrong
        if is_wrong and options.show:
            print(f"{language} {what}: {span!r} in {clean!r}")
    for row in sorted(tried):
        print(f"{row:24} {wrong[row]:4} of {tried[row]:4}  {100 * wrong[row] / tried[row]:5.1f} %")
    redact(LINE)
    tries = timeit.repeat(lambda: redact(LINE), timer=time.process_time, number=1_000)
    seconds = min(tries) / 1_000
    print(f"{'a line of a log':24} {1e6 * seconds:.1f} µs")


if __name__ == "__main__":
    main()
