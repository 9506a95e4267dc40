"""Remembers, recalls, talks, changes and forgets.

SERVER=… TOKEN=… python clients/python/examples/client.py
"""

from __future__ import annotations

import os

from whatsapp_memory_client import MemoryClient, NotFound, operations

CHAT = "15550100789@c.us"


def main() -> None:
    server = os.environ.get("SERVER", "http://127.0.0.1:8000")
    with MemoryClient(server, os.environ["TOKEN"]) as client:
        memory = client.remember("SampleCorp pays in 14 days", whatsapp_chat=CHAT)
        print(f"remembered: {memory['content']} ({memory['visibility']})")

        # Page by page, as the loop goes on.
        contents = [each["content"] for each in client.memories(whatsapp_chat=CHAT)]
        print(f"listed: {', '.join(contents)}")

        found = client.recall("When does SampleCorp pay?", whatsapp_chat=CHAT)
        print(f"recalled: {found['results'][0]['content']}")

        # The reply comes in pieces; the last event has the whole answer.
        for event in client.chat_stream("When does SampleCorp pay?", whatsapp_chat=CHAT):
            if event.answer:
                print(f"answered from {len(event.answer['memories'])} memories")

        # With its ETag, a memory is only changed if nobody else has changed it since.
        etag = client.send(operations.memories_get(memory["memory_id"])).etag
        changed = client.change(memory["memory_id"], if_match=etag, content="It pays in 30 days")
        print(f"changed: {changed['content']}")

        receipt = client.forget(memory["memory_id"])
        print(f"forgotten: {receipt['kind']}, {receipt['probe']}")
        try:
            client.forget(memory["memory_id"])
        except NotFound as error:
            print(f"once more: {error.code}")


if __name__ == "__main__":
    main()
