"""Each framework's own messages come back as they were, and their texts are the chat's messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from conftest import SERVER, TOKEN
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from openai import AsyncOpenAI
from pydantic_ai import Agent as PydanticAgent, BinaryContent
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.test import TestModel
from whatsapp_memory_client import AsyncMemoryClient, MemoryClient
from whatsapp_memory_client.adapters.agents import MemorySession
from whatsapp_memory_client.adapters.langchain import MemoryChatMessageHistory
from whatsapp_memory_client.adapters.pydantic_ai import MemoryHistory, memory_tools

LONG = "שלום, a long result of a tool. " * 4000
ODD = "half an emoji \ud83d, a NUL \0, a line \u2028 end"
PICTURE = "data:image/png;base64," + "iVBORw0KGgo" * 6000


@pytest.fixture
def client() -> Iterator[MemoryClient]:
    with MemoryClient(SERVER, TOKEN) as made:
        yield made


def run(test: Callable[[AsyncMemoryClient], Awaitable[None]]) -> None:
    async def with_client() -> None:
        async with AsyncMemoryClient(SERVER, TOKEN) as client:
            await test(client)

    asyncio.run(with_client())


def texts(client: MemoryClient, chat: str) -> list[tuple[str, str]]:
    """The role and the text of a chat's messages, the oldest first."""
    found = [*client.messages(client.open_session(chat)["session_id"])][::-1]
    return [(each["role"], each["content"]) for each in found]


def test_the_history_of_langchain(client: MemoryClient, chat: str) -> None:
    history = MemoryChatMessageHistory(client, chat)
    history.clear()
    said: list[BaseMessage] = [
        SystemMessage("Be brief"),
        HumanMessage("What does it cost?", id="h1", name="Dana"),
        AIMessage("", tool_calls=[{"name": "price", "args": {"of": "bread"}, "id": "c1"}]),
        ToolMessage(LONG, tool_call_id="c1", artifact={"a": [1, None]}),
        AIMessage(
            [
                {"type": "text", "text": "Five"},
                {"type": "tool_use", "id": "t", "name": "x", "input": {}},
            ]
        ),
        HumanMessage(
            [{"type": "image_url", "image_url": {"url": PICTURE}}, {"type": "text", "text": "this"}]
        ),
        HumanMessage(ODD),
    ]
    history.add_messages(said)
    history.add_messages([])
    assert history.messages == said
    assert [role for role, _ in texts(client, chat)] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "user",
    ]
    assert texts(client, chat)[5] == ("user", "this")
    client.exchange("from elsewhere", "I see", whatsapp_chat=chat)
    assert history.messages[-2:] == [HumanMessage("from elsewhere"), AIMessage("I see")]
    history.clear()
    assert history.messages == []
    many: list[BaseMessage] = [HumanMessage(str(number)) for number in range(1001)]
    history.add_messages(many)
    assert history.messages == many


def test_the_session_of_openai_agents(client: MemoryClient, chat: str) -> None:
    items: list[Any] = [
        {"role": "user", "content": "What does it cost?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" * 20_000},
        {"type": "function_call", "call_id": "c1", "name": "price", "arguments": '{"of":"bread"}'},
        {"type": "function_call_output", "call_id": "c1", "output": LONG},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "and"},
                {"type": "input_image", "image_url": PICTURE},
            ],
        },
        {
            "type": "message",
            "id": "m1",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": "Five", "annotations": []},
                {"type": "output_text", "text": ODD, "annotations": []},
            ],
        },
    ]

    async def test(memory: AsyncMemoryClient) -> None:
        session = MemorySession(memory, chat)
        await session.clear_session()
        assert await session.pop_item() is None
        await session.add_items(items)
        await session.add_items([])
        assert await session.get_items() == items
        assert await session.get_items(2) == items[-2:]
        assert await session.get_items(0) == []
        assert await session.pop_item() == items[-1]
        await memory.exchange("from elsewhere", "I see", whatsapp_chat=chat)
        assert (await session.get_items(1)) == [{"role": "assistant", "content": "I see"}]
        await session.clear_session()
        assert await session.get_items() == []

    run(test)
    assert texts(client, chat) == []


def test_an_agent_goes_on_with_its_session(client: MemoryClient, chat: str, model_url: str) -> None:
    set_tracing_disabled(True)

    async def test(memory: AsyncMemoryClient) -> None:
        async with AsyncOpenAI(base_url=model_url, api_key="none") as openai:
            agent = Agent(name="Baker", model=OpenAIChatCompletionsModel("any", openai))
            session = MemorySession(memory, chat)
            for said in ("one", "two"):
                answered = await Runner.run(agent, said, session=session)
                assert answered.final_output == f"answer to: {said}"
            assert len(await session.get_items()) == 4

    run(test)
    assert texts(client, chat)[2:] == [("user", "two"), ("assistant", "answer to: two")]


def test_the_history_and_the_tools_of_pydantic_ai(client: MemoryClient, chat: str) -> None:
    client.remember("The bread costs five", whatsapp_chat=chat)

    async def test(memory: AsyncMemoryClient) -> None:
        history = MemoryHistory(memory, chat)
        assert await history.load() == []
        agent = PydanticAgent(TestModel(), toolsets=[memory_tools(memory, chat)])
        picture = BinaryContent(b"\x89PNG" * 9000, media_type="image/png")
        first = await agent.run(["What does bread cost?", picture, ODD])
        await history.add(first.new_messages())
        written = ModelMessagesTypeAdapter.dump_python(first.new_messages(), mode="json")
        assert await history.load() == ModelMessagesTypeAdapter.validate_python(written)
        await memory.exchange("from elsewhere", "I see", whatsapp_chat=chat)
        second = await agent.run("And now?", message_history=await history.load())
        await history.add(second.new_messages())
        assert len(await history.load()) == len(second.all_messages())

    run(test)
    stored = texts(client, chat)
    assert stored[0][1].startswith("What does bread cost?")
    assert [role for role, _ in stored[:4]] == ["user", "assistant", "tool", "assistant"]
    assert "created" in stored[2][1]
