"""What schemathesis is told beside the schema. It loads this file by its name, in a process of
its own, where nothing of the project is there."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from typing import Any

import schemathesis
from schemathesis.generation import GenerationMode
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import RejectedPositiveData

# What no schema can tell, by operation: the fields for which something may be refused that has
# the right form. "*": of any operation.
BEYOND_SCHEMAS: dict[str, set[str]] = {
    # A place in the very list, objects whose names hold a NUL character, JSON within a text,
    # names with commas between them, and times before the year 2 or after 9999.
    "*": {"cursor", "metadata", "value", "where", "fields"}
    | {"before", "after", "said_at", "valid_from", "valid_until", "expires_at"},
    # An id of what is there.
    "memories_change_batch": {
        *("memories", "memory_id", "content", "visibility", "expires_at", "said_at", "valid_until")
    },
    "messages_search": {"whatsapp_chat"},
    # What a category's documents hold, and how files may be called everywhere.
    "documents_save": {"*"},
    "documents_archive": {"identifier"},
    "documents_forget": {"identifier"},
    "documents_get": {"identifier"},
    "documents_list": {"pattern"},
    # Whether there is anything in it, and for whom it is.
    "files_upload": {"file", "whatsapp_chat"},
    # Whose turn it is, line by line.
    "transcripts_save": {"text", "overlap"},
    "transcripts_validate": {"overlap"},
    # The least that the system text and the last message need.
    "sessions_context": {"max_tokens", "query"},
    # One field depends on another, on the token, or on the clock.
    "chat": {"whatsapp_chat"},
    "sessions_open": {"whatsapp_chat"},
    "sessions_messages_add": {"content", "tool_calls", "tool_call_id", "function", "custom"},
    # JSON within a text.
    "memories_list": {"metadata"},
    "memories_recall": {"whatsapp_chat"},
    "memories_export": {"embeddings"},
    **dict.fromkeys(
        ("memories_keyed_get", "memories_keyed_forget", "memories_keyed_namespaces"),
        {"visibility", "whatsapp_chat"},
    ),
    "memories_keyed_list": {"visibility", "whatsapp_chat"},
    "memories_keyed_put": {
        *("namespace", "key", "visibility", "whatsapp_chat"),
        *("index", "text", "ttl_seconds", "expires_at"),
    },
    "memories_forget_batch": {"memory_ids", "visibility", "whatsapp_chat"},
    "memories_remember": {"visibility", "expires_at", "valid_until"},
    "memories_remember_batch": {"visibility", "expires_at", "valid_until"},
    "memories_change": {"content", "visibility", "expires_at", "valid_until"},
    "chats_change": {"assignee", "paused_until"},
    "jobs_erase": {"whatsapp_chat"},
    "jobs_export": {"embeddings"},
    # Where it leads, and whether the name is another's.
    "webhooks_add": {"url", "name"},
    "webhooks_change": {"url", "name"},
    # A place in the log.
    "events_list": {"after"},
}
TALLY = "CONTRACT_TALLY"
# The ids of memories that are there.
MEMORIES = "CONTRACT_MEMORIES"
# The names of the one summary that is there.
SUMMARY = "CONTRACT_SUMMARY"
# A session, and the ids of messages of it that may go.
PASSING = "CONTRACT_PASSING"
ALIKE = "CONTRACT_ALIKE"

KEY = "Idempotency-Key"
PRINTABLE = re.compile(r"[!-~]([ -~]*[!-~])?")

seen: Counter[str] = Counter()
alike: Counter[tuple[Any, ...]] = Counter()
calls = 0


@schemathesis.hook
def before_load_schema(context: Any, raw_schema: dict[str, Any]) -> None:
    """A field that the schema doesn't know isn't to be in an answer."""
    for name, schema in raw_schema["components"]["schemas"].items():
        if "properties" in schema and not name.endswith("Request"):
            schema.setdefault("additionalProperties", False)


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """Of the values that are wrong in one way at one place, keep the first ones. A parameter of
    the same name is the same place at every operation: it is read by the same code."""
    meta = case.meta
    is_positive = meta.generation.mode is GenerationMode.POSITIVE
    if ALIKE not in os.environ or is_positive or meta.phase.name is not TestPhase.COVERAGE:
        return True
    what = meta.phase.data
    where = str(what.location).lower()
    named = what.parameter is not None and not where.endswith("body")
    place = ("" if named else case.operation.label, what.parameter, where)
    wrong = (*place, what.scenario, what.description)
    alike[wrong] += 1
    return alike[wrong] <= int(os.environ[ALIKE])


@schemathesis.serializer("application/x-ndjson")
def lines(context: Any, value: Any) -> Any:
    return value if isinstance(value, bytes | str) else bytes(value)


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """What is made up would be refused for its key, version or place alone: three of four calls
    go on without."""
    global calls
    calls += 1
    if calls % 4 == 0:
        return
    for name, value in list((case.headers or {}).items()):
        if name == KEY and PRINTABLE.fullmatch(value) and len(value) <= 200:
            case.headers[name] = f"{calls}-{value}"
        elif name == "If-Match":
            del case.headers[name]
    named = case.operation.definition.raw.get("operationId")
    if named == "sessions_summaries_get":
        # Only one session has a summary.
        case.path_parameters.update(json.loads(os.environ[SUMMARY]))
    if named == "sessions_messages_forget" and calls % 4 == 1:
        # Whose messages are left when they are erased is up to chance.
        session, messages = json.loads(os.environ[PASSING])
        case.path_parameters.update(session_id=session, message_id=messages[calls % len(messages)])
    if case.meta.generation.mode is GenerationMode.POSITIVE and isinstance(case.body, dict):
        known = json.loads(os.environ[MEMORIES])
        for each, key in zip(case.body.get("memories", ()), known, strict=False):
            if "memory_id" in each:
                each["memory_id"] = key
    for given in (case.query, case.body):
        for name in ("cursor", "where", "fields"):
            if isinstance(given, dict) and given.get(name):
                del given[name]


@schemathesis.hook
def filter_failure(context: Any, failure: Any, case: Any, response: Any) -> bool:
    """False for what is right all the same."""
    if not isinstance(failure, RejectedPositiveData) or response.status_code != 400:
        return True
    named = case.operation.definition.raw.get("operationId", "")
    allowed = BEYOND_SCHEMAS["*"] | BEYOND_SCHEMAS.get(named, set())
    places = [str(error["attr"]).split(".") for error in json.loads(response.content)["errors"]]
    # What is within a condition has names of its own.
    attrs = {place[0] if place[0] == "where" else place[-1] for place in places}
    right = attrs <= allowed or "*" in allowed
    if right:
        seen[f"{named} beyond the schema: {sorted(attrs)}"] += 1
    return not right


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    named = case.operation.definition.raw.get("operationId", case.operation.label)
    if case.method.upper() == case.operation.method.upper():
        seen[f"{named} {response.status_code}"] += 1
        if TALLY in os.environ:
            with open(os.environ[TALLY], "w", encoding="utf-8") as file:
                json.dump(seen, file)
