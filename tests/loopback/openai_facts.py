"""What the loopback model learns from a person's messages: a few rules instead of a model, so
that learning shows where no model is. Pure functions."""

from __future__ import annotations

import json
import re

from tests.loopback.openai_behaviours import Json
from tests.loopback.openai_chat_api import text_of

_BLOCK = re.compile(r"<(name|message)-(\w+)>\n(.*?)\n</\1-\2>", re.DOTALL)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_STATED = re.compile(
    r"\b(?:my|our) [\w' ]+ (?:is|are) |\bI(?:'m| am) (?:allergic|from|a )"
    r"|\bI (?:live|work|prefer|like|owe|own|moved)\b"
    r"|(?:שלי|שלנו) |אני (?:גר|עובד|אוהב|מעדיף|אלרגי)",
    re.IGNORECASE,
)
_DOUBTED = re.compile(r"\b(?:maybe|perhaps|I think)\b|אולי|נראה לי", re.IGNORECASE)
_PREFERRED = re.compile(r"\b(?:prefer|like|favou?rite)\b|אוהב|מעדיף", re.IGNORECASE)
_REACHED = re.compile(r"\b(?:phone|address|e-?mail)\b|טלפון|כתובת", re.IGNORECASE)
_MINE = re.compile(r"^my ", re.IGNORECASE)


def wants_facts(body: Json) -> bool:
    """Whether a request asks for facts, by its form or, with a server that can't be told one,
    by its prompt."""
    form = body.get("response_format") or {}
    schema = form.get("json_schema") if isinstance(form, dict) else None
    if isinstance(schema, dict):
        return schema.get("name") == "facts"
    system = [text_of(each) for each in body["messages"] if each["role"] == "system"]
    return any('"required":["facts"]' in text for text in system)


def facts_answer(body: Json) -> str:
    """The JSON that was asked for: each sentence in which somebody states something about
    themselves, with their name."""
    facts, name = [], ""
    for kind, _, text in _BLOCK.findall(text_of(body["messages"][-1])):
        if kind == "name":
            name = text
            continue
        facts += [_fact(said.strip(), name) for said in _SENTENCE.findall(text) if _states(said)]
        name = ""
    return json.dumps({"facts": facts}, ensure_ascii=False)


def _states(sentence: str) -> bool:
    return bool(_STATED.search(sentence)) and not sentence.rstrip().endswith("?")


def _fact(sentence: str, name: str) -> Json:
    if name and _MINE.match(sentence):
        fact = _MINE.sub(f"{name}'s ", sentence)
    else:
        fact = f"{name}: {sentence}" if name else sentence
    kind = "fact"
    if _PREFERRED.search(sentence):
        kind = "preference"
    elif _REACHED.search(sentence):
        kind = "contact"
    confidence = 0.4 if _DOUBTED.search(sentence) else 0.9
    return {"fact": fact, "quote": sentence, "type": kind, "confidence": confidence}
