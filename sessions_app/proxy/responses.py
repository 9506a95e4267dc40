"""OpenAI's Responses as chat completions, which exchanges are stored and read as. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from memoryproject.foundation.integrations.llm.reading import json_of

# Of a streamed answer: the event that ends it, with the whole answer in its data.
ENDS = re.compile(rb"^event: ?response\.(?:completed|incomplete|failed)", re.MULTILINE)
END_TYPES = {"response.completed", "response.incomplete", "response.failed"}
CUT = {"reason": "max_output_tokens"}
DELTA = "response.output_text.delta"
SYSTEM_ROLES = {"system", "developer"}


def messages_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the instructions and the input of a call as messages.

    Thoughts, and items that refer to others, are none.
    """
    found: list[dict[str, Any]] = []
    if isinstance(body.get("instructions"), str):
        found.append({"role": "system", "content": body["instructions"]})
    given = body.get("input")
    for each in [{"role": "user", "content": given}] if isinstance(given, str) else given or []:
        if "role" in each:
            found.append({"role": each["role"], "content": each.get("content")})
        elif str(each["type"]) in CALLS:
            found.append({"role": "assistant", "content": None, "tool_calls": [_call(each)]})
        elif str(each["type"]) in OUTPUTS:
            output = each.get("output")
            content = output if isinstance(output, (str, list)) else json.dumps(output)
            found.append({"role": "tool", "tool_call_id": each.get("call_id"), "content": content})
    return found


CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
OUTPUTS = {"function_call_output", "custom_tool_call_output"}


def _call(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call of a tool in the form of chat completions."""
    arguments = item.get(CALLS[item["type"]])
    if item["type"] == "custom_tool_call":
        # Its input is a text of any form.
        arguments = json.dumps({"input": arguments}, ensure_ascii=False)
    function = {"name": item.get("name"), "arguments": arguments}
    return {"id": item.get("call_id"), "type": "function", "function": function}


def with_memory(body: Mapping[str, Any], block: str) -> dict[str, Any]:
    """Return the call with the block after the program's own first system text."""
    given = body.get("input")
    first = given[0] if isinstance(given, list) else {}
    if body.get("instructions") or first.get("role") not in SYSTEM_ROLES:
        texts = [body.get("instructions"), block]
        return {**body, "instructions": "\n\n".join(filter(None, texts))}
    return {**body, "input": [with_block(first, block, "input_text"), *body["input"][1:]]}


def with_block(message: Mapping[str, Any], block: str, kind: str) -> dict[str, Any]:
    """Return a message with the block after its text, be it in parts, of this kind, or not."""
    own = message.get("content")
    if isinstance(own, list):
        return {**message, "content": [*own, {"type": kind, "text": block}]}
    return {**message, "content": "\n\n".join(filter(None, [own, block]))}


def completion_of(body: bytes) -> bytes:
    """Return an answer, be it JSON or a stream of events, as a chat completion.

    Of a stream that the program left, what was written until then. Raises AttemptFailed where it is
    no JSON.
    """
    answer = _response(body)
    if not isinstance(answer, Mapping) or answer.get("error") or not answer.get("output"):
        return json.dumps(answer).encode()
    items = [each for each in answer["output"] if isinstance(each, Mapping)]
    contents = [each.get("content") for each in items if each.get("type") == "message"]
    found = [part for each in contents if isinstance(each, list) for part in each]
    parts = [part for part in found if isinstance(part, Mapping)]
    why, usage = answer.get("incomplete_details"), answer.get("usage") or {}
    message = {
        "content": parts,
        "refusal": [{"text": each.get("refusal")} for each in parts if each.get("refusal")],
        "reasoning": any(each.get("type") == "reasoning" for each in items),
        "tool_calls": [_call(each) for each in items if each.get("type") in CALLS],
    }
    completion = {
        "model": answer.get("model"),
        "choices": [{"message": message, "finish_reason": why.get("reason") if why else "stop"}],
        "usage": {
            "prompt_tokens": usage.get("input_tokens"),
            "completion_tokens": usage.get("output_tokens"),
        },
    }
    return json.dumps(completion).encode()


def _response(body: bytes) -> Any:
    if not body.lstrip().startswith((b"data:", b"event:", b": ")):
        return json_of(body)
    events = list(_events(body.decode(errors="replace")))
    ends = [each.get("response") for each in events if each.get("type") in END_TYPES]
    if ends:
        return ends[-1]
    written = "".join(str(each.get("delta")) for each in events if each.get("type") == DELTA)
    message = {"type": "message", "content": [{"type": "output_text", "text": written}]}
    return {"output": [message], "incomplete_details": CUT}


def _events(text: str) -> Iterator[Mapping[str, Any]]:
    for line in re.split(r"[\r\n]+", text):
        if line.startswith("data:"):
            try:
                event = json.loads(line.removeprefix("data:"))
            except ValueError:
                continue
            if isinstance(event, Mapping):
                yield event
