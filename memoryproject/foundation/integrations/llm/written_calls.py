"""Read the calls of functions that a server left in a model's text. Pure."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from memoryproject.foundation.integrations.llm.base import Completion
from memoryproject.foundation.integrations.llm.reading import tool_calls_of
from memoryproject.foundation.integrations.llm.thoughts import without_calls

# How models write calls where their server doesn't read them: Qwen and Hermes, Mistral, Llama,
# Claude.
_CALL_TAG = re.compile(r"<tool_call>\s*(\{.*?\})\s*(?:</tool_call>|$)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([\w.-]+)>\s*(\{.*?\})\s*(?:</function>|$)", re.DOTALL)
_INVOKE = re.compile(
    r"<(?:antml:)?invoke name=\"([^\"<>]{1,200})\">"
    r"((?:[^<]|<(?!/?(?:antml:)?invoke\b))*)</(?:antml:)?invoke>"
)
_PARAMETER = re.compile(r"(?s)<(?:antml:)?parameter name=\"([^\"<>]+)\">(.*?)</")
_CALL_MARK = "[TOOL_CALLS]"
_ARGUMENTS = ("arguments", "parameters", "tool_input", "action_input", "input", "args")
_ARGUMENT = re.compile(
    r"\b(query|fact|reason)\b(?:[\"'=:> ]|<\w{1,9}>){1,9}([^\"'<>{}()\n]{1,300})"
)
MAX_OBJECTS = 20
_FENCE = "```"


def with_calls_of_text(completion: Completion, names: Collection[str]) -> Completion:
    """Return the answer with the calls that its text holds instead of an answer.

    ``names``: the functions that were offered; a text that names none of them stays.
    """
    text = completion.text
    if completion.tool_calls or not any(name in text for name in names):
        return completion
    written, rest = _written(text.strip())
    calls = [call for each in written for call in _written_calls(each, names)]
    if not calls:
        calls, rest = _calls_within(text, names), ""
    if not calls:
        return completion
    return replace(completion, text=rest.strip(), tool_calls=tool_calls_of(calls))


def _calls_within(text: str, names: Collection[str]) -> list[dict[str, Any]]:
    """Return the call in a text of another form: an object that names a function, or its name.

    A name of two words, such as search_memory, is no word of an answer. What follows it are its
    arguments, whatever their form.
    """
    found = [each for each in _objects_in(text) if _name_in(each) in names]
    if found:
        given: Any = next((found[0][key] for key in _ARGUMENTS if key in found[0]), {})
        return [{"function": {"name": _name_in(found[0]), "arguments": given}}]
    name = next((name for name in names if "_" in name and name in text), None)
    if name is None:
        return []
    rest = text.partition(name)[2]
    arguments: Any = next(_objects_in(rest), None) or dict(_ARGUMENT.findall(rest))
    return [{"function": {"name": name, "arguments": arguments}}]


def _name_in(found: Mapping[str, Any]) -> object:
    names = (found.get(key) for key in ("name", "tool", "tool_name", "function", "action"))
    return next((name for name in names if isinstance(name, str)), None)


def _objects_in(text: str) -> Iterator[dict[str, Any]]:
    """Yield the first JSON objects within a text."""
    for begin in islice(re.finditer(r"\{", text), MAX_OBJECTS):
        try:
            found, _end = json.JSONDecoder().raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            continue
        yield found


def _written(text: str) -> tuple[list[str], str]:
    """Return what may be calls in a text, and the rest of it."""
    tagged: list[str] = _CALL_TAG.findall(text)
    for name, given in _FUNCTION.findall(text):
        tagged.append(f'{{"name": "{name}", "arguments": {given}}}')
    for name, inside in _INVOKE.findall(text):
        tagged.append(json.dumps({"name": name, "arguments": dict(_PARAMETER.findall(inside))}))
    if tagged:
        return tagged, without_calls(text)
    before, mark, after = text.partition(_CALL_MARK)
    if mark:
        return [after], before
    if text.startswith(_FENCE) and text.endswith(_FENCE):
        # Its first line names the language.
        text = text.removesuffix(_FENCE).partition("\n")[2]
    return [text], ""


def _written_calls(written: str, names: Collection[str]) -> list[dict[str, Any]]:
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        return []
    calls = []
    for each in found if isinstance(found, list) else [found]:
        if isinstance(each, dict) and each.get("name") in names:
            arguments = each.get("arguments", each.get("parameters"))
            calls.append({"function": {"name": each["name"], "arguments": arguments}})
    return calls
