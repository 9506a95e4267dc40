"""Agents of OpenAI's SDK that get this server's memory by their base URL.

They call tools, hand over to each other and stream; what was said before needs no session.

pip install openai-agents
SERVER=… TOKEN=… python clients/python/examples/agents_responses.py
"""

from __future__ import annotations

import asyncio
import os

from agents import Agent, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from openai import AsyncOpenAI

CHAT = "agents-responses@external"


@function_tool
def price(product: str) -> str:
    """Return the price of a product."""
    return "The bread costs five."


async def main() -> None:
    set_tracing_disabled(True)
    async with AsyncOpenAI(
        base_url=f"{os.environ['SERVER']}/v1",
        api_key=os.environ["TOKEN"],
        default_headers={"X-Memory-Chat": CHAT},
    ) as openai:
        set_default_openai_client(openai, use_for_tracing=False)
        baker = Agent(name="baker", instructions="You sell bread.", tools=[price])
        waiter = Agent(name="waiter", instructions="You greet.", handoffs=[baker])
        told = await Runner.run(baker, "What is the price of the bread?")
        print(told.final_output)
        handed = await Runner.run(waiter, "transfer_to_baker, for the price")
        print(f"{handed.last_agent.name}: {handed.final_output}")
        streamed = Runner.run_streamed(waiter, "Is the bread dear?")
        words = [
            event.data.delta
            async for event in streamed.stream_events()
            if event.type == "raw_response_event"
            and event.data.type == "response.output_text.delta"
        ]
        print("|".join(words))


if __name__ == "__main__":
    asyncio.run(main())
