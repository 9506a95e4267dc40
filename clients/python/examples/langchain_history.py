"""A model of LangChain that goes on with a conversation.

pip install './clients/python[langchain]'
SERVER=… TOKEN=… python clients/python/examples/langchain_history.py
"""

from __future__ import annotations

import os

from langchain_core.language_models import FakeListChatModel
from whatsapp_memory_client import MemoryClient
from whatsapp_memory_client.adapters.langchain import MemoryChatMessageHistory

CHAT = "langchain-example@external"


def main() -> None:
    with MemoryClient(os.environ["SERVER"], os.environ["TOKEN"]) as client:
        # Stands for any chat model.
        model = FakeListChatModel(responses=["Five.", "From eight on."])
        history = MemoryChatMessageHistory(client, CHAT)
        for said in ("What does the bread cost?", "And when do you open?"):
            history.add_user_message(said)
            history.add_message(model.invoke(history.messages))
        for message in history.messages:
            print(f"{message.type}: {message.text}")
        client.erase_chat(CHAT)


if __name__ == "__main__":
    main()
