"""Measures how long the card of a session takes, and how much memory: run from the project's root.

    python benchmarks/measure_cards.py [--messages 100 1000 10000]

Messages are made up: sentences of English and Hebrew with names, numbers, decisions and tasks,
of which each session has the same share. Prints for each length the seconds, microseconds a
message, and the peak of memory beyond the messages, which are told one by one.
"""

from __future__ import annotations

import argparse
import platform
import random
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cards_app.memory_card import generate_memory_card

SENTENCES = (
    "Which rooms do you have for the first week of June?",
    "We decided to take the room with the view over Haifa.",
    "You need to confirm it by Monday, else it goes to Dana Levi.",
    "Call me at 050-1234567 or write to dana@shop.example!",
    "It costs 3,500 ₪ for two nights, breakfast included.",
    "The deposit of 500 was paid on 2025-01-15 at 10:30.",
    "החלטנו להזמין שולחן לשמונה במסעדת אלומה.",
    "צריך לשלם את המקדמה עד יום ראשון.",
    "ד״ר רבינוביץ מגיע מתל אביב עם יוסי?",
    "תודה רבה, נדבר מחר בבוקר.",
)


def messages(count: int) -> Iterator[dict[str, str]]:
    """Made up, the same each time."""
    chance = random.Random(7)
    for number in range(count):
        content = " ".join(chance.choices(SENTENCES, k=3))
        yield {"role": ("user", "assistant")[number % 2], "content": content}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--messages", type=int, nargs="+", default=[100, 1_000, 10_000])
    counts = parser.parse_args().messages
    print(f"Python {platform.python_version()} on {platform.machine()}")
    print("messages   seconds   µs a message   peak memory")
    for count in counts:
        started = time.perf_counter()
        generate_memory_card({"session_id": "benchmark", "messages": messages(count)})
        took = time.perf_counter() - started
        tracemalloc.start()
        generate_memory_card({"session_id": "benchmark", "messages": messages(count)})
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"{count:8,}{took:10.2f}{took / count * 1e6:15.0f}{peak / 1024:11.0f} KB", flush=True)


if __name__ == "__main__":
    main()
