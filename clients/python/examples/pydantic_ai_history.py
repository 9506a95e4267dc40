"""An agent of Pydantic AI that goes on with a conversation, and remembers by tools.

pip install './clients/python[pydantic-ai]' openai
SERVER=… TOKEN=… OPENAI_API_KEY=… python clients/python/examples/pydantic_ai_history.py
"""

from __future__ import annotations

import asyncio
import os

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from whatsapp_memory_client import AsyncMemoryClient
from whatsapp_memory_client.adapters.pydantic_ai import MemoryHistory, memory_tools

CHAT = "pydantic-ai-example@external"


async def main() -> None:
    async with AsyncMemoryClient(os.environ["SERVER"], os.environ["TOKEN"]) as client:
        agent = Agent(OpenAIChatModel("gpt-4o-mini"), toolsets=[memory_tools(client, CHAT)])
        history = MemoryHistory(client, CHAT)
        for said in ("What does the bread cost?", "And the rolls?"):
            result = await agent.run(said, message_history=await history.load())
            await history.add(result.new_messages())
            print(result.output)
        print("messages:", len(await history.load()))
        await client.erase_chat(CHAT)


if __name__ == "__main__":
    asyncio.run(main())
