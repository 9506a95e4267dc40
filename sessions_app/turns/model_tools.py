"""The functions that a chat model may call while it answers, with the rights of the person.

A call sees and stores what the same person's command would, whatever a message, a document or a
memory tells the model to do.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memories_app.facts.validation import MAX_CONTENT
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.llm import base as llm, server_traits
from memoryproject.foundation.redaction.redact import holds_card_number
from memoryproject.foundation.tables import read_table
from memoryproject.foundation.text.characters import cut_at_word, fold
from sessions_app.conversations.history_queries import History, messages_left_out
from sessions_app.models import Turn
from sessions_app.models.chats import reading_role
from sessions_app.recall.facade import MEMORIES, MESSAGES, Viewer, hit_record, number_for, recall
from sessions_app.turns import compose_prompt, handing_over, turn_dependencies
from sessions_app.turns.commands.dispatch import remember_reply
from sessions_app.turns.prompt import fenced_text, quotes_instructions, without_labels, without_loop

logger = logging.getLogger(__name__)

# How often the model may call functions before it has to answer, and how many in one go.
MAX_ROUNDS = 3
MAX_CALLS = 4
MAX_QUERY = 300
# Who searches again knows why: one text too many is better than one too few.
LOWER_BAR = 0.5
# A fact is stored for good where the person's message has so much of its words.
STATED = 0.5
# Inflected words of a fact and of the message are compared by their beginnings.
STEM = 4
NOTHING = "Nothing was found."
# The code of an error.
QUOTES_PROMPT = "model_quotes_prompt"


def _tool(name: str, description: str, parameter: str, meaning: str) -> dict[str, Any]:
    properties = {parameter: {"type": "string", "description": meaning}}
    parameters = {"type": "object", "properties": properties, "required": [parameter]}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


_TABLE = read_table(__file__, "model_tools.yaml")
TOOLS = tuple(_tool(**each) for each in _TABLE["tools"])
HAND_OVER = _tool(**_TABLE["hand_over"])


@dataclass
class ToolCalls:
    """The calls of one answer: what they may do, what was called, and what was found.

    ``text``: the person's message. ``history``: what the prompt holds of the
    conversation.
    ``own_name``: the assistant's. ``hands_over``: a person was called.
    ``exchange``: the calls with their results, as the prompt goes on. ``recalled``: the records of
    the texts that were found.
    """

    turn: Turn
    dependencies: turn_dependencies.Dependencies
    text: str
    is_offered: bool
    history: History | None = None
    own_name: str = ""
    exchange: list[llm.ChatMessage] = field(default_factory=list)
    recalled: list[dict[str, Any]] = field(default_factory=list)
    hands_over: bool = False

    @property
    def offered(self) -> Sequence[Mapping[str, Any]]:
        if not self.is_offered:
            return ()
        return (*TOOLS, HAND_OVER) if handing_over.can_be_handed_over(self.turn) else TOOLS

    def complete(
        self, request: llm.ChatRequest, ask: Callable[[llm.ChatRequest], llm.Completion]
    ) -> llm.Completion:
        """Return the model's answer to a request, after what it calls has been run.

        Raises ChatModelError, also where the answer repeats the instructions.
        """
        # What an earlier prompt called, which was refused in the end, doesn't count.
        self.exchange.clear()
        self.recalled.clear()
        self.hands_over = False
        prompt, offered = request.messages, replace(request, tools=self.offered)
        for _ in range(MAX_ROUNDS):
            completion = ask(offered)
            if not completion.tool_calls or not offered.tools:
                return self._checked(completion, request)
            self._run(completion)
            offered = replace(offered, messages=[*prompt, *self.exchange])
        # Now it has to answer. Some servers refuse calls in a prompt where no function is offered.
        as_texts = server_traits.fitted(offered.messages, server_traits.Traits(tools_as_text=True))
        return self._checked(ask(replace(offered, messages=as_texts, tools=())), request)

    def _checked(self, completion: llm.Completion, request: llm.ChatRequest) -> llm.Completion:
        system = [each.content for each in request.messages if each.role == "system"]
        if system and quotes_instructions(completion.text, system[0]):
            raise llm.ChatModelError(ErrorText(QUOTES_PROMPT), permanent=True)
        names = [each["function"]["name"] for each in self.offered]
        named = [each for each in names if "_" in each]
        text = completion.text
        if any(each in text for each in named):
            # Lines that name a function are calls in a form that nobody reads.
            lines = (line for line in text.split("\n") if not any(each in line for each in named))
            text = "\n".join(lines).strip()
            if not text:
                raise llm.ChatModelError(ErrorText("model_empty"))
        if completion.is_recital:
            return replace(completion, text=without_labels(text))
        text = without_labels(text, self.own_name)
        once = without_loop(text, self.text)
        finish = completion.finish if once == text else llm.Finish.WHOLE
        return replace(completion, text=once, finish=finish)

    def _run(self, completion: llm.Completion) -> None:
        calls = completion.tool_calls[:MAX_CALLS]
        wanted = [call.as_dict() for call in calls]
        self.exchange.append(llm.ChatMessage("assistant", completion.text, tool_calls=wanted))
        for call in calls:
            result = self._result(call)
            self.exchange.append(
                llm.ChatMessage("tool", result, tool_call_id=call.id, name=call.name)
            )

    def _result(self, call: llm.ToolCall) -> str:
        functions: dict[str, tuple[str, Callable[[str], str]]] = {
            "search_memory": ("query", lambda query: self._search(query, MEMORIES)),
            "search_conversation": ("query", lambda query: self._search(query, MESSAGES)),
            "remember": ("fact", self._remember),
            "hand_over": ("reason", self._hand_over),
        }
        if call.name not in functions:
            return f"There is no function {call.name}."
        parameter, function = functions[call.name]
        value = _argument(call.arguments, parameter)
        # Who is told that a person comes gets one, whatever the model says of the reason.
        if not value and function != self._hand_over:
            return f"The argument {parameter} is missing: a text."
        logger.info("The model calls %s.", call.name)
        return function(value)

    def _hand_over(self, _reason: str) -> str:
        """Note the wish; it is carried out with the answer. The exchange shows the reason."""
        if not handing_over.can_be_handed_over(self.turn):
            return "There is nobody to hand over to here."
        self.hands_over = True
        return "A person has been called and will answer here."

    def _search(self, query: str, source: str) -> str:
        rules, chat_id = self.dependencies.rules, self.turn.chat_id
        found = recall(
            query=query[:MAX_QUERY],
            viewer=Viewer(reading_role(self.turn.user_role, self.turn.context), chat_id),
            embedder=self.dependencies.embedder,
            top_k=number_for(query, rules.top_k),
            min_similarity=rules.min_similarity * LOWER_BAR,
            sources=(source,),
            left_out=None if self.history is None else messages_left_out(self.history, chat_id),
        )
        # An erasure finds by this record what the answer was told.
        self.recalled += [{**hit_record(hit), "in_prompt": True} for hit in found.hits]
        lines = [compose_prompt.hit_text(hit, rules.time_zone) for hit in found.hits]
        return fenced_text(self.turn.turn_id.hex[:12], lines) or NOTHING

    def _remember(self, fact: str) -> str:
        """Store the fact, or leave it to staff where the person hasn't said it.

        A text that was recalled may tell the model to store something.
        """
        fact = " ".join(fact.split())[:MAX_CONTENT]
        if holds_card_number(fact):
            return "It is not stored: it holds the number of a payment card."
        is_stated = is_stated_in(fact, self.text)
        draft = remember_reply(
            turn=self.turn,
            fact=fact,
            embedder=self.dependencies.embedder,
            is_proposal=not is_stated,
        )
        if draft.outcome != "answered":
            return "It could not be stored."
        return "Stored." if is_stated else "Staff will decide whether it is stored."


def is_stated_in(fact: str, text: str) -> bool:
    """Return whether the person's message has all numbers and at least half of the fact's words."""
    words, stated = _words(fact), _words(text)
    numbers = {word for word in words if any(map(str.isdigit, word))}
    others = {word[:STEM] for word in words - numbers}
    found = others & {word[:STEM] for word in stated}
    return numbers <= stated and bool(others) and len(found) >= STATED * len(others)


def _words(text: str) -> set[str]:
    plain = "".join(each if each.isalnum() else " " for each in fold(text))
    return {word for word in plain.split() if len(word) > 2 or word.isdigit()}


def _argument(arguments: str, name: str) -> str:
    """Return the one argument; a model may also send the text alone."""
    try:
        found = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    value = found.get(name) if isinstance(found, dict) else found
    return cut_at_word(value.strip(), 4 * MAX_CONTENT) if isinstance(value, str) else ""
