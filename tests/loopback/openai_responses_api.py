"""POST /v1/responses as OpenAI documents it: what a request must hold, the answer's form, streamed
or not, and calls of the tools that were named in what was said. Pure functions."""

from __future__ import annotations

import json
import re

from tests.loopback.openai_behaviours import Json, error_object


def find_fault(body: Json) -> Json | None:
    """The error body that a wrong request gets; None for a right one."""
    for name in ("model", "input"):
        if not body.get(name):
            message = f"Missing required parameter: '{name}'."
            return error_object(message, kind="invalid_request_error", param=name)
    return None


def as_chat(body: Json) -> Json:
    """The request as one of chat completions, by which the server's model decides what it says."""
    texts = [{"role": "system", "content": body.get("instructions") or ""}]
    return {"messages": texts + [_message(item) for item in _items(body)]}


def _items(body: Json) -> list[Json]:
    given = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _message(item: Json) -> Json:
    if "role" in item:
        content = item["content"]
        parts = content if isinstance(content, list) else [{"text": content}]
        return {"role": item["role"], "content": "".join(part.get("text", "") for part in parts)}
    if item["type"] == "function_call_output":
        return {"role": "tool", "content": item["output"]}
    return {"role": "assistant", "content": ""}


def response(body: Json, *, number: int, created: int, text: str) -> Json:
    """The answer's JSON: calls of the tools that were named and not called yet, or a text."""
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": created,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "model": f"{body['model']}-loopback",
        "output": _calls(body, number) or [_written(number, text)],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "usage": {
            "input_tokens": 9,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 13,
        },
    }


def _calls(body: Json, number: int) -> list[Json]:
    messages = as_chat(body)["messages"]
    said = " ".join(each["content"] for each in messages if each["role"] == "user")
    called = {item.get("name") for item in _items(body)}
    calls: list[Json] = []
    for tool in body.get("tools", []):
        if tool["type"] == "function" and tool["name"] in said and tool["name"] not in called:
            asked = dict.fromkeys(tool["parameters"].get("properties", {}), said)
            key = f"{number}_{len(calls)}"
            calls.append(
                {
                    **{"type": "function_call", "id": f"fc_{key}", "call_id": f"call_{key}"},
                    **{"name": tool["name"], "arguments": json.dumps(asked), "status": "completed"},
                }
            )
    return calls


def _written(number: int, text: str) -> Json:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
    return {**message, "status": "completed", "content": [part]}


def as_events(answer: Json) -> bytes:
    """A response as it is streamed: item by item, of a text word by word."""
    begun = {**answer, "status": "in_progress", "output": []}
    events: list[Json] = [{"type": "response.created", "response": begun}]
    for place, item in enumerate(answer["output"]):
        is_text = item["type"] == "message"
        blank: Json = {"content": []} if is_text else {"arguments": ""}
        about = {"output_index": place, "item_id": item["id"]}
        added = {**item, **blank, "status": "in_progress"}
        events.append({"type": "response.output_item.added", "output_index": place, "item": added})
        events += _text_events(item, about) if is_text else _call_events(item, about)
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    events.append({"type": "response.completed", "response": answer})
    lines = [
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n"
        for number, event in enumerate(events)
    ]
    return "".join(lines).encode()


def _text_events(item: Json, about: Json) -> list[Json]:
    (part,) = item["content"]
    about = {**about, "content_index": 0, "logprobs": []}
    deltas = [
        {"type": "response.output_text.delta", **about, "delta": word}
        for word in re.findall(r"\s*\S+\s*", part["text"])
    ]
    return [
        {"type": "response.content_part.added", **about, "part": {**part, "text": ""}},
        *deltas,
        {"type": "response.output_text.done", **about, "text": part["text"]},
        {"type": "response.content_part.done", **about, "part": part},
    ]


def _call_events(item: Json, about: Json) -> list[Json]:
    done = {"name": item["name"], "arguments": item["arguments"]}
    return [
        {"type": "response.function_call_arguments.delta", **about, "delta": item["arguments"]},
        {"type": "response.function_call_arguments.done", **about, **done},
    ]
