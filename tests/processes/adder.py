"""Several processes that add to a session and read from it, all at once.

Run as ``python -m tests.processes.adder SESSION_ID TIMES NAME…``: waits for a line on stdin, forks
a process for each name, lets all go at one moment, and prints how many messages they added. Each
adds one to three messages so many times. Ends with 1 and the reason where something was wrong.
"""

from __future__ import annotations

import os
import sys
from datetime import datetime, timezone
from uuid import UUID

import django

from memoryproject.foundation.process.narrowing import present
from tests.processes.forks import run_at_once


def main(session_id: UUID, times: int, names: list[str]) -> int:
    """The number of messages added."""
    from sessions_app.conversations.message_store import NewMessage  # noqa: PLC0415
    from sessions_app.history.dependencies import build_chat_memory  # noqa: PLC0415 imports models
    from sessions_app.models import Message  # noqa: PLC0415

    service = build_chat_memory()

    def add(name: str) -> int:
        added = 0
        for _ in range(times):
            count = added % 3 + 1
            messages = [
                NewMessage(
                    "user" if place % 2 == 0 else "assistant",
                    f"{name} says {added + place} ".ljust(120, "."),
                    datetime.now(timezone.utc),
                )
                for place in range(count)
            ]
            stored = service.add_messages(conversation_id=session_id, messages=messages)
            first = stored[0].order_num
            assert first is not None
            # What is added at once stands together, whoever else adds.
            assert [each.order_num for each in stored] == list(range(first, first + count))
            added += count
            newest = service.get_messages(conversation_id=session_id, limit=20)
            numbers = [each.order_num for each in newest]
            oldest = present(numbers[0])
            # A summary of which all stands in the others is left out.
            left_out = set(range(oldest, present(numbers[-1]))) - set(numbers)
            of_session = Message.objects.filter(session=session_id, order_num__in=left_out)
            assert of_session.filter(role="summary").count() == len(left_out), numbers
            assert numbers == sorted(set(numbers)), numbers
        return added

    print("ready", flush=True)  # noqa: T201
    sys.stdin.readline()
    return sum(run_at_once(add, names))


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
    django.setup()
    print(main(UUID(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))  # noqa: T201
