"""An agent of OpenAI's SDK that goes on with a conversation.

pip install './clients/python[agents]'
SERVER=… TOKEN=… OPENAI_API_KEY=… python clients/python/examples/agents_session.py
"""

from __future__ import annotations

import asyncio
import os

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI
from whatsapp_memory_client import AsyncMemoryClient
from whatsapp_memory_client.adapters.agents import MemorySession

CHAT = "agents-example@external"


async def main() -> None:
    set_tracing_disabled(True)
    async with (
        AsyncMemoryClient(os.environ["SERVER"], os.environ["TOKEN"]) as client,
        AsyncOpenAI() as openai,
    ):
        model = OpenAIChatCompletionsModel("gpt-4o-mini", openai)
        agent = Agent(name="Baker", instructions="You sell bread.", model=model)
        session = MemorySession(client, CHAT)
        for said in ("What does the bread cost?", "And the rolls?"):
            print((await Runner.run(agent, said, session=session)).final_output)
        print("items:", len(await session.get_items()))
        await client.erase_chat(CHAT)


if __name__ == "__main__":
    asyncio.run(main())
