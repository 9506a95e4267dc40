"""What a memory document must look like: every failure is told with its path."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest

from memories_app.memory_document_format.envelope import content_read, envelope_read, envelope_saved
from memories_app.memory_document_format.names import CATEGORIES
from memories_app.memory_document_format.strict_json import MemoryDocumentInvalidError
from tests.tables import table
from tests.unit.memory_documents.examples import CONTENTS, document, envelope_problems

NOW = datetime(2025, 11, 25, 10, 30, tzinfo=timezone.utc)


def problems(value: Any, **changes: Any) -> list[str]:
    text = value if isinstance(value, bytes | str) else json.dumps(value)
    return [str(problem) for problem in envelope_problems(text, **changes)]


@table("category", CATEGORIES)
def test_the_examples_of_the_format_are_without_a_fault(category: str) -> None:
    text = json.dumps(document(category))
    envelope = envelope_read(text, category=category)
    assert envelope.text == text
    assert envelope.content == CONTENTS[category]
    assert (envelope.category, envelope.summary) == (category, "feature-auth")
    assert envelope.created == envelope.changed == NOW


@table("category", CATEGORIES)
def test_every_field_of_the_content_may_be_left_out(category: str) -> None:
    assert problems(document(category, content={})) == []
    for field in CONTENTS[category]:
        assert problems(document(category, content={field: CONTENTS[category][field]})) == []


def test_unknown_fields_are_kept_everywhere() -> None:
    value = document("context", later=[1, 2.5, None, {"x": True}])
    value["meta"]["model"] = {"name": "m"}
    value["content"]["extra"] = [[1]]
    value["content"]["interfaces"]["AuthService"]["events"] = 5
    envelope = envelope_read(json.dumps(value))
    assert envelope.value == value
    saved = envelope_saved(
        envelope, category="context", summary="x", content={"notes": "n"}, session_id=None, now=NOW
    )
    assert saved.meta["model"] == {"name": "m"}
    assert saved.value["later"] == value["later"]


def test_all_failures_are_listed_each_with_its_path() -> None:
    value = {
        "meta": {"created": "yesterday", "category": "context", "session_id": 5},
        "content": {
            "decisions": ["a", 1, None],
            "interfaces": {"A B": {"methods": "login"}, "C": []},
            "pending": {},
            "notes": ["x"],
        },
    }
    assert problems(value) == [
        "meta.summary: is missing",
        'meta.created: must be an ISO 8601 time with Z, such as 2025-11-25T10:30:00Z: "yesterday"',
        "meta.session_id: must be a text, not a number",
        "content.decisions[1]: must be a text, not a number",
        "content.decisions[2]: must be a text, not null",
        'content.interfaces["A B"].methods: must be a list, not a text',
        "content.interfaces.C: must be an object, not a list",
        "content.pending: must be a list, not an object",
        "content.notes: must be a text, not a list",
    ]


@table(
    ("category", "content", "path"),
    [
        ("decisions", {"decision": 1}, "content.decision"),
        ("decisions", {"rationale": None}, "content.rationale"),
        ("decisions", {"alternatives_considered": "a"}, "content.alternatives_considered"),
        ("decisions", {"constraints": [True]}, "content.constraints[0]"),
        ("decisions", {"status": "Accepted"}, "content.status"),
        ("decisions", {"status": []}, "content.status"),
        ("interfaces", {"module": {}}, "content.module"),
        ("interfaces", {"types": {"User": {"id": 5}}}, "content.types.User.id"),
        ("interfaces", {"types": {"User": "x"}}, "content.types.User"),
        ("interfaces", {"functions": {"a": {"params": [0]}}}, "content.functions.a.params[0]"),
        ("interfaces", {"functions": {"a": {"returns": []}}}, "content.functions.a.returns"),
        ("interfaces", {"functions": []}, "content.functions"),
        ("interfaces", {"events": [{}]}, "content.events[0]"),
        ("handoffs", {"task": 42}, "content.task"),
        ("handoffs", {"progress": 70}, "content.progress"),
        *(
            ("handoffs", {field: [1]}, f"content.{field}[0]")
            for field in ("completed", "pending", "blockers", "next_steps", "context_references")
        ),
        ("context", [], "content"),
        ("context", None, "content"),
    ],
)
def test_each_field_of_each_category_has_its_type(category: str, content: Any, path: str) -> None:
    (problem,) = envelope_problems(json.dumps({**document(category), "content": content}))
    assert problem.path == path


@table(
    ("value", "told"),
    [
        ([], "the document: must be an object, not a list"),
        ({"content": {}}, "meta: is missing"),
        ({"meta": 5, "content": {}}, "meta: must be an object, not a number"),
        ({"meta": {}}, "content: is missing"),
        (document("context", meta={"category": "notes"}), "meta.category: must be one of"),
        (document("context", meta={"summary": " "}), "meta.summary: is empty"),
        (document("context", meta={"summary": None}), "meta.summary: must be a text, not null"),
        (b"", "the document: is empty"),
        (b" \n", "the document: is empty"),
        (b'{"a": \xff}', "the document: is not UTF-8 (byte 7)"),
        ('{"a": 1, ?}', "(line 1, column 10)"),
        ("{'a': 1}", "the document: is not JSON"),
        ("[" * 100_000, "the document: is nested deeper than 32 levels"),
        ('{"a":' * 40 + "1" + "}" * 40, "is nested deeper than 32 levels"),
        ("[" + "1," * 30_000 + "1]", "has more than 20000 values"),
        ('"' + "x" * 1_100_000 + '"', "is larger than 1048576 bytes"),
    ],
)
def test_what_is_no_document_is_told(value: Any, told: str) -> None:
    assert any(told in problem for problem in problems(value)), problems(value)


@table(
    ("field", "told"),
    [
        ('"notes": "a", "notes": "b"', "content.notes: stands there more than once"),
        ('"x": NaN', "content.x: is NaN, which is no number of JSON"),
        ('"x": [-Infinity]', "content.x[0]: is -Infinity, which is no number of JSON"),
        ('"x": 1e999', "content.x: is a number out of range"),
        ('"x": 9223372036854775808', "content.x: is a whole number of more than 64 bits"),
        (f'"x": {"9" * 10_000}', "content.x: is a whole number of more than 64 bits"),
        (r'"notes": "\u0000"', "content.notes: has a NUL character"),
        (r'"notes": "\ud800"', "content.notes: has half a character"),
        (r'"\u0000": 1', r'content["\u0000"]: has a NUL character'),
        (r'"\ud800": {"a\u001b": NaN}', r'content["\ud800"]["a\u001b"]: is NaN'),
        ('"notes": NaN', "content.notes: must be a text, not a number"),
    ],
)
def test_what_cannot_be_stored_or_is_read_in_two_ways_is_told(field: str, told: str) -> None:
    text = json.dumps(document("context", content={})).replace(
        '"content": {}', f'"content": {{{field}}}'
    )
    assert any(problem.startswith(told) for problem in problems(text)), problems(text)


def test_the_largest_numbers_are_kept() -> None:
    content = {"x": [2**63 - 1, -(2**63), 1.5, 0.1, 1e300, -0.0]}
    assert content_read("context", json.dumps(content)).content == content


@table(
    "stamp",
    [
        "2025-11-25T10:30:00Z",
        "2025-11-25T10:30Z",
        "2025-11-25T10:30:00.5Z",
        "2025-11-25T10:30:00,123456789Z",
        "2024-02-29T23:59:59Z",
    ],
)
def test_times_of_iso_8601_with_z_are_read(stamp: str) -> None:
    assert problems(document("context", meta={"created": stamp})) == []


@table(
    "stamp",
    [
        "2025-11-25T10:30:00+00:00",
        "2025-11-25T10:30:00",
        "2025-11-25 10:30:00Z",
        "2025-11-25",
        "2025-13-25T10:30:00Z",
        "2025-02-30T10:30:00Z",
        "2025-11-25T24:30:00Z",
        "2025-11-25T10:30:00z",
        "٢٠٢٥-11-25T10:30:00Z",
        "0000-11-25T10:30:00Z",
        "9999-12-31T23:59:59Z",
        " 2025-11-25T10:30:00Z",
        "2025-11-25T10:30:00Z\n",
        5,
    ],
)
def test_other_times_are_refused_also_such_as_end_in_an_offset(stamp: Any) -> None:
    (problem, *_) = envelope_problems(json.dumps(document("context", meta={"created": stamp})))
    assert problem.path == "meta.created"


def test_a_session_that_is_null_is_none() -> None:
    assert (
        envelope_read(json.dumps(document("context", meta={"session_id": None}))).session_id == ""
    )


def test_a_document_among_those_of_another_category_is_told() -> None:
    told = problems(document("context", content={}), category="handoffs")
    assert told == ["meta.category: is context, but the document is among the handoffs"]


def test_the_mark_that_some_editors_put_before_a_file_is_passed_over() -> None:
    raw = b"\xef\xbb\xbf" + json.dumps(document("context")).encode()
    assert envelope_read(raw).text == raw.decode("utf-8-sig")


def test_an_update_keeps_when_it_was_created_and_says_when_it_was_changed() -> None:
    values: dict[str, Any] = {"category": "interfaces", "summary": "auth", "session_id": "s1"}
    old = envelope_saved(None, **values, content={"module": "a"}, now=NOW)
    assert list(old.meta) == ["created", "category", "summary", "session_id"]
    later = NOW.replace(hour=12)
    new = envelope_saved(old, **{**values, "session_id": None}, content={"module": "b"}, now=later)
    assert (new.created, new.changed, new.session_id) == (NOW, later, "s1")
    assert new.content == {"module": "b"}


def test_saving_the_same_again_changes_nothing_but_a_number_of_another_kind_does() -> None:
    values: dict[str, Any] = {"category": "context", "summary": "x", "session_id": None}
    old = envelope_saved(None, **values, content={"x": 1}, now=NOW)
    assert envelope_saved(old, **values, content={"x": 1}, now=NOW) is old
    for other in (1.0, True):
        assert envelope_saved(old, **values, content={"x": other}, now=NOW) is not old


def test_an_updated_time_of_another_program_that_is_none_is_passed_over() -> None:
    for updated in (5, "soon", None):
        envelope = envelope_read(json.dumps(document("context", meta={"updated": updated})))
        assert envelope.changed == NOW


def test_content_that_is_to_be_saved_is_told_of_by_the_same_paths() -> None:
    for raw, path in (('{"decisions": [NaN]}', "content.decisions[0]"), ("{", "content")):
        with pytest.raises(MemoryDocumentInvalidError) as refused:
            content_read("context", raw)
        assert refused.value.problems[0].path == path


@table(
    ("content", "completed"),
    [
        ({"progress": "100%"}, True),
        ({"progress": " 100 % ", "pending": [], "blockers": []}, True),
        ({"progress": "100%", "next_steps": ["Tell the customer"]}, True),
        ({"progress": "100%", "pending": ["Logout"]}, False),
        ({"progress": "100%", "blockers": ["No key"]}, False),
        ({"progress": "70%", "pending": []}, False),
        ({"progress": "done"}, False),
        ({"progress": "1000%"}, False),
        ({"pending": []}, False),
    ],
)
def test_a_handoff_is_completed_at_100_percent(content: dict[str, Any], completed: bool) -> None:
    envelope = envelope_read(json.dumps(document("handoffs", content=content)))
    assert envelope.is_completed is completed


def test_only_handoffs_are_ever_completed() -> None:
    assert not envelope_read(
        json.dumps(document("context", content={"progress": "100%"}))
    ).is_completed
