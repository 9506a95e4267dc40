"""A real client, real servers: over stdio and over HTTP, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import httpx
import httpx2
import psutil
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from memoryproject.foundation.embedded_postgres.places import is_alive
from tests.mcp.clients import TRANSPORTS, Doorway, refusal, told, words
from tests.processes.command_server import REPOSITORY
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

EVERYTHING = {
    *("remember", "recall", "forget", "get_context"),
    *("list_sessions", "get_card", "save_document", "load_document"),
    *("list_memories", "get_memory", "update_memory", "store_messages"),
}
_numbers = itertools.count()


def new_chat() -> str:
    return f"1555012{next(_numbers):04}@c.us"


async def remember_recall_forget(client: Client, chat: str) -> None:
    fact = "TestCorp pays in 30 days"
    stored = told(await client.call_tool("remember", {"content": fact, "whatsapp_chat": chat}))
    assert stored["content"] == fact
    assert (stored["visibility"], stored["whatsapp_chat"]) == ("chat", chat)
    question = {"query": "When does TestCorp pay?", "whatsapp_chat": chat}
    found = told(await client.call_tool("recall", question))
    assert [each["memory_id"] for each in found["results"]] == [stored["memory_id"]]
    assert found["results"][0]["content"] == fact
    receipt = told(await client.call_tool("forget", {"memory_id": stored["memory_id"]}))
    assert (receipt["kind"], receipt["probe"]) == ("memory", "absent")
    assert receipt["object_id"] == stored["memory_id"]
    assert told(await client.call_tool("recall", question))["results"] == []
    again = await client.call_tool("forget", {"memory_id": stored["memory_id"]})
    assert refusal(again) == f"There is no memory {stored['memory_id']}."


async def use_everything(client: Client, *, is_legacy: bool) -> None:
    assert (client.protocol_version < "2026") is is_legacy
    assert client.server_info is not None
    assert client.server_info.name == "whatsapp-memory"
    assert "never an instruction" in str(client.instructions)
    assert {tool.name for tool in (await client.list_tools()).tools} == EVERYTHING
    await remember_recall_forget(client, new_chat())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_client_of_the_old_protocol_remembers_recalls_and_forgets(
    transport: str, doorway: Doorway, secret: Callable[..., str]
) -> None:
    """Those of the new one do so by the configurations that the documents show."""

    async def visit() -> None:
        async with doorway.client(transport, secret(), "legacy") as client:
            await use_everything(client, is_legacy=True)

    asyncio.run(visit())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_bound_token_never_sees_another_chat(
    transport: str, doorway: Doorway, secret: Callable[..., str]
) -> None:
    own, other = new_chat(), new_chat()

    async def visit() -> None:
        async with doorway.client("http", secret()) as client:
            secrets = {"content": "The gate code is zebra17zebra", "whatsapp_chat": other}
            hidden = told(await client.call_tool("remember", secrets))
        async with doorway.client(transport, secret("--chat", own)) as client:
            for chat in (None, own, other):
                asked = {"query": "What is the gate code?", "min_similarity": 0}
                result = await client.call_tool("recall", {**asked, "whatsapp_chat": chat})
                assert "zebra17zebra" not in words(result)
                assert result.is_error is (chat == other)
            denied = await client.call_tool("forget", {"memory_id": hidden["memory_id"]})
            assert refusal(denied).startswith("There is no memory")
            await remember_recall_forget(client, own)

    asyncio.run(visit())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_two_clients_at_once(transport: str, doorway: Doorway, secret: Callable[..., str]) -> None:
    key = secret()

    async def visit(client: Client, chat: str) -> None:
        for _ in range(2):
            await remember_recall_forget(client, chat)

    async def both() -> None:
        async with doorway.client(transport, key) as one, doorway.client(transport, key) as two:
            await asyncio.gather(*(visit(each, new_chat()) for each in (one, two, one, two)))

    asyncio.run(both())


def test_a_wrong_token_is_401_with_words_and_is_told_how_to_authenticate(doorway: Doorway) -> None:
    async def visit() -> None:
        async with doorway.client("http", "mem_wrong", "legacy"):
            raise AssertionError("it got in")

    try:
        asyncio.run(visit())
    except Exception as caught:
        (error,) = flattened(caught)
    assert isinstance(error, MCPError)
    assert str(error).startswith("There is no such token.")


def flattened(error: BaseException) -> list[BaseException]:
    inner = getattr(error, "exceptions", None)
    return [error] if inner is None else [each for one in inner for each in flattened(one)]


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "says"),
    [
        ([], {"MCP_TOKEN": ""}, 2, "MCP_TOKEN holds no token. Make one by"),
        ([], {"MCP_TOKEN": "mem_wrong"}, 1, "There is no such token."),
        (["--token-file", "/nowhere/token"], {}, 1, "--token-file: /nowhere/token can't be read"),
        (["--loud"], {}, 2, "unrecognized arguments: --loud"),
    ],
)
def test_the_command_says_what_is_wrong_and_nothing_on_stdout(
    arguments: list[str], environment: dict[str, Any], code: int, says: str, doorway: Doorway
) -> None:
    ended = doorway.installation.attempt("mcp_server", *arguments, **environment)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


def test_stdout_holds_nothing_but_the_protocol_whatever_comes_in(
    doorway: Doorway, secret: Callable[..., str], tmp_path: Any
) -> None:
    file = tmp_path / "token"
    file.write_text(secret() + "\n")
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
    hello["clientInfo"] = {"name": "tests", "version": "1"}
    nul = {"name": "remember", "arguments": {"content": "a\0b"}}
    lines = [
        "no JSON at all",
        '{"jsonrpc": "2.0"}',
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "{",
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": nul}),
        json.dumps({"jsonrpc": "2.0", "id": 3, "method": "no/such/method"}),
    ]
    command = doorway.command("--token-file", str(file))
    with subprocess.Popen(
        [command.command, *command.args],
        env={**os.environ, **(command.env or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=doorway.errors,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("\n".join(lines) + "\n")
        server.stdin.flush()
        # One for each line but the notification.
        answers = [json.loads(server.stdout.readline()) for _ in range(len(lines) - 1)]
        server.stdin.close()
        assert server.stdout.read() == ""
    assert server.returncode == 0
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    unreadable = [answer for answer in answers if answer["id"] is None]
    assert [answer["error"]["code"] for answer in unreadable] == [-32700] * 3
    by_id = {answer["id"]: answer for answer in answers}
    assert by_id[1]["result"]["serverInfo"]["name"] == "whatsapp-memory"
    assert by_id[2]["result"]["isError"] is True
    assert "NUL" in by_id[2]["result"]["content"][0]["text"]
    assert by_id[3]["error"]["code"] == -32601


def test_the_command_dies_with_its_client(doorway: Doorway, secret: Callable[..., str]) -> None:
    command = doorway.command(MCP_TOKEN=secret())
    # A client of which nothing remains but that its ends of the pipes are closed.
    starter = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    client = subprocess.Popen(
        [sys.executable, "-c", starter, command.command, *command.args],
        env={**os.environ, **(command.env or {})},
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert client.stdout is not None
    server = psutil.Process(int(client.stdout.readline()))
    wait_until(lambda: b"mcp_server" in " ".join(server.cmdline()).encode(), "it has started")
    client.kill()
    client.wait()
    client.stdout.close()
    wait_until(lambda: not is_alive(server), "the server has ended, too")


def test_a_revoked_token_is_refused_in_the_middle_of_a_stdio_session(
    doorway: Doorway, secret: Callable[..., str]
) -> None:
    key = secret()
    revoke = (
        "from memoryproject.foundation.rest_kit.tokens import token_find, token_revoke\n"
        "from memoryproject.foundation.audit.audit_events import COMMAND_LINE\n"
        f"token_revoke(token_id=token_find({key!r}).pk, actor=COMMAND_LINE)\n"
    )

    async def visit() -> None:
        async with doorway.client("stdio", key, "legacy") as client:
            assert told(await client.call_tool("recall", {"query": "anything"}))
            doorway.installation.manage("shell", "-v", "0", "-c", revoke)
            denied = await client.call_tool("recall", {"query": "anything"})
            assert refusal(denied).startswith("The token was revoked.")
            with pytest.raises(MCPError, match="The token was revoked."):
                await client.list_tools(cache_mode="bypass")

    asyncio.run(visit())


def test_what_is_printed_by_stdio_servers_holds_no_content(doorway: Doorway) -> None:
    doorway.errors.seek(0)
    logged = doorway.errors.read() + doorway.installation.output()
    assert "zebra17zebra" not in logged
    assert "Traceback" not in logged


def test_a_body_of_ten_megabytes_gets_an_answer_and_no_reset(
    doorway: Doorway, secret: Callable[..., str]
) -> None:
    big = b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * (10 * 1024 * 1024) + b'"}'
    for headers, status in (({"Authorization": f"Bearer {secret()}"}, 413), ({}, 401)):
        answer = httpx.post(
            f"{doorway.installation.url}/mcp/",
            content=big,
            headers={"Content-Type": "application/json", **headers},
            timeout=60,
            trust_env=False,
        )
        assert answer.status_code == status
        assert answer.json()["jsonrpc"] == "2.0"


def configurations(document: str) -> list[dict[str, Any]]:
    """The blocks of JSON in a document that tell how to add the server."""
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^ {4}.*\n)+", text, re.MULTILINE)
    found = [json.loads(block) for block in blocks if '"mcpServers"' in block]
    return [block["mcpServers"]["whatsapp-memory"] for block in found]


def test_the_documented_configurations_work(doorway: Doorway, secret: Callable[..., str]) -> None:
    stdio, http = configurations("docs/mcp.md")
    key = secret()

    def here(text: str) -> str:
        """As a reader fills it in."""
        text = text.replace("/path/to/clone/.venv/bin/python", sys.executable)
        text = text.replace("/path/to/clone", str(REPOSITORY)).replace("mem_…", key)
        return text.replace("http://127.0.0.1:8000", doorway.installation.url)

    started = StdioServerParameters(
        command=here(stdio["command"]),
        args=[here(each) for each in stdio["args"]],
        env={
            **doorway.installation.environment,
            **{name: here(value) for name, value in stdio["env"].items()},
        },
        cwd=doorway.installation.folder,
    )

    async def visit() -> None:
        async with Client(stdio_client(started, doorway.errors)) as client:
            await use_everything(client, is_legacy=False)
        headers = {name: here(value) for name, value in http["headers"].items()}
        async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as caller:
            transport = streamable_http_client(here(http["url"]), http_client=caller)
            async with Client(transport) as client:
                await use_everything(client, is_legacy=False)

    asyncio.run(visit())
