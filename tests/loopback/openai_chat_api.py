"""POST /v1/chat/completions as OpenAI documents it: what a request must hold, the answer's
form, streamed or not, and an answer that shows what was in the prompt. Pure functions."""

from __future__ import annotations

import json
import re

from tests.loopback.openai_behaviours import Json, error_object

ROLES = {"system", "developer", "user", "assistant", "tool", "function"}
MEMORY_BLOCK = re.compile(r"<memories[^>]*>(.*?)</memories[^>]*>", re.DOTALL)


def find_fault(body: Json) -> Json | None:
    """The error body that a wrong request gets; None for a right one."""
    model, messages = body.get("model"), body.get("messages")
    if not isinstance(model, str) or not model:
        return _fault("you must provide a model parameter")
    if messages is None:
        return _fault("Missing required parameter: 'messages'.", "messages")
    if not isinstance(messages, list) or not messages:
        return _fault("Invalid 'messages': expected a non-empty array.", "messages")
    for place, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ROLES:
            return _fault(f"Invalid value: {role!r}.", f"messages[{place}].role")
        if role != "assistant" and not isinstance(message.get("content"), (str, list)):
            where = f"messages[{place}].content"
            return _fault(f"Invalid type for '{where}': expected a string or an array.", where)
    return None


def echo_answer(body: Json) -> str:
    """The default answer: the last user message, and how many memories the prompt held."""
    messages = body["messages"]
    said = [text_of(message) for message in messages if message["role"] == "user"]
    return f"You said: {said[-1] if said else ''}\nMemories I saw: {count_memories(body)}"


def count_memories(body: Json) -> int:
    """The lines that start with "- " between <memories> and </memories>, in all messages
    but the last user's, who could write such a thing himself."""
    messages = body["messages"]
    users = [message for message in messages if message["role"] == "user"]
    texts = [text_of(message) for message in messages if users[-1:] != [message]]
    blocks = [block for text in texts for block in MEMORY_BLOCK.findall(text)]
    return sum(line.startswith("- ") for block in blocks for line in block.splitlines())


def text_of(message: Json) -> str:
    """A message's text, of either form of its content."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    parts = (part.get("text", "") for part in content if part.get("type") == "text")
    return "".join(parts)


def completion(body: Json, *, number: int, created: int, text: str, finish_reason: str) -> Json:
    """The answer's JSON. The model's name gains a suffix, as a real alias becomes the name
    of the version that answered."""
    text, finish_reason = _within_limit(body, text, finish_reason)
    message: Json = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    prompt = sum(3 + count_tokens(text_of(each)) for each in body["messages"]) + 3
    answer = count_tokens(text)
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": created,
        "model": f"{body['model']}-loopback",
        "choices": [choice],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_loopback",
    }


def as_events(answer: Json) -> bytes:
    """A completion as it is streamed: word by word, and then how it ended."""
    text = answer["choices"][0]["message"]["content"] or ""
    pieces: list[Json] = [{"content": word} for word in re.findall(r"\s*\S+\s*", text)]
    ends = [None] * len(pieces) + [answer["choices"][0]["finish_reason"]]
    about = {name: answer[name] for name in ("id", "created", "model")}
    chunks = [
        {
            **about,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": end}],
        }
        for delta, end in zip([*pieces, {}], ends, strict=True)
    ]
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def count_tokens(text: str) -> int:
    """An estimate: four characters a token."""
    return (len(text) + 3) // 4


def _within_limit(body: Json, text: str, finish_reason: str) -> tuple[str, str]:
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    if not isinstance(limit, int) or count_tokens(text) <= limit:
        return text, finish_reason
    return text[: limit * 4], "length"


def _fault(message: str, param: str | None = None) -> Json:
    return error_object(message, kind="invalid_request_error", param=param)
