"""What an agent of LangGraph knows, kept in the memory server.

pip install './clients/python[langgraph]'
SERVER=… TOKEN=… python clients/python/examples/langgraph_store.py
"""

from __future__ import annotations

import os

from whatsapp_memory_client import MemoryClient
from whatsapp_memory_client.adapters.langgraph import MemoryStore

CHAT = "langgraph-example@external"


def main() -> None:
    with MemoryClient(os.environ["SERVER"], os.environ["TOKEN"]) as client:
        # Given to a graph: builder.compile(store=store).
        store = MemoryStore(client, CHAT)
        store.put(("dana", "facts"), "diet", {"text": "Dana eats no meat", "since": 2024})
        store.put(("dana", "facts"), "city", {"text": "Dana lives in Haifa", "since": 2019})
        store.put(("dana", "cart"), "1", {"item": "bread"}, index=False, ttl=60)

        print("found:", store.search(("dana",), query="Where does she live?")[0].value["text"])
        newer = store.search(("dana", "facts"), filter={"since": {"$gt": 2020}})
        print("newer:", [item.key for item in newer])
        print("namespaces:", store.list_namespaces())
        store.delete(("dana", "cart"), "1")
        print("cart:", store.get(("dana", "cart"), "1"))
        client.erase_chat(CHAT)


if __name__ == "__main__":
    main()
