"""generate_memory_card: from a session as seed 001 gives one to its card."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from cards_app.memory_card import FIELDS, Card, check_card, generate_memory_card
from cards_app.rules.session_data import SessionDataError
from tests.fuzz.damage import FACTOR
from tests.tables import table
from tests.unit.cards.test_example import EXAMPLE
from tests.unit.cards.texts import ANY_TEXT

AT = datetime(2025, 1, 15, 11, 0, tzinfo=timezone.utc)
SESSION: dict[str, Any] = {
    "session_id": "sess_2025_01_15_auth_deploy",
    "messages": [
        {"role": line.role, "content": line.content, "timestamp": f"2025-01-15T10:3{place}:00Z"}
        for place, line in enumerate(EXAMPLE)
    ],
}
# The seed's complete example, with the three deviations that docs/cards.md lists.
EXAMPLE_YAML = Path(__file__).with_name("example.yaml").read_text(encoding="utf-8")

ROLES = st.sampled_from(["user", "assistant", "system", "tool", "summary", "תפקיד", "on-call"])
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": ROLES, "content": ANY_TEXT}), max_size=8
)  # fmt: skip


def session_of(*contents: str) -> dict[str, Any]:
    return {"session_id": "s", "messages": [{"role": "user", "content": c} for c in contents]}


def test_the_complete_example_as_yaml() -> None:
    assert generate_memory_card(SESSION, extracted_at=AT).to_yaml() == EXAMPLE_YAML


def test_the_time_is_told_and_never_taken_from_the_clock() -> None:
    assert generate_memory_card(SESSION).to_dict()["extracted_at"] is None
    assert "# Generated: not given\n" in generate_memory_card(SESSION).to_yaml()
    local = AT.astimezone(timezone(timedelta(hours=2)))
    assert generate_memory_card(SESSION, extracted_at=local) == generate_memory_card(
        SESSION, extracted_at=AT
    )
    with pytest.raises(ValueError, match="extracted_at: must have a time zone"):
        generate_memory_card(SESSION, extracted_at=AT.replace(tzinfo=None))


def test_a_session_without_messages() -> None:
    card = generate_memory_card({"session_id": "empty", "messages": []})
    assert card.title == "Untitled Session"
    assert "decisions: []\n" in card.to_yaml()
    assert check_card(card) == []


def test_what_else_stands_in_the_data_is_left_alone() -> None:
    data = {**SESSION, "whatsapp_chat": "15550100123@c.us"}
    data["messages"] = [{**message, "metadata": {"a": 1}} for message in SESSION["messages"]]
    assert generate_memory_card(data) == generate_memory_card(SESSION)


@table(
    ("data", "path", "problem"),
    [
        ([], "session_data", "must be an object, not of type list"),
        ({"messages": []}, "session_id", "must be a text, not missing"),
        ({"session_id": 7, "messages": []}, "session_id", "must be a text, not of type int"),
        ({"session_id": "", "messages": []}, "session_id", "one line of 1 to 255"),
        ({"session_id": "a\nb: c", "messages": []}, "session_id", "one line of 1 to 255"),
        ({"session_id": "x" * 256, "messages": []}, "session_id", "one line of 1 to 255"),
        ({"session_id": "s"}, "messages", "must be a list, not missing"),
        ({"session_id": "s", "messages": "hello"}, "messages", "must be a list, not of type str"),
        ({"session_id": "s", "messages": {}}, "messages", "must be a list, not of type dict"),
        ({"session_id": "s", "messages": ["hello"]}, "messages[0]", "must be an object"),
        (
            {"session_id": "s", "messages": [{"role": "user", "content": "a"}, {"content": "b"}]},
            "messages[1].role",
            "must be a text, not missing",
        ),
        (
            {"session_id": "s", "messages": [{"role": "a] b", "content": ""}]},
            "messages[0].role",
            "must be a word of letters",
        ),
        (
            {"session_id": "s", "messages": [{"role": "x" * 33, "content": ""}]},
            "messages[0].role",
            "at most 32 long",
        ),
        (
            {"session_id": "s", "messages": [{"role": "user", "content": None}]},
            "messages[0].content",
            "must be a text, not missing",
        ),
        (
            {"session_id": "s", "messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "messages[0].content",
            "must be a text, not of type list",
        ),
        *[
            (
                {"session_id": "s", "messages": [{"role": "user", "content": "", "timestamp": at}]},
                "messages[0].timestamp",
                "must be a",
            )
            for at in (7, "yesterday", "2025-02-30T10:00:00Z", "2025-01-15T25:00")
        ],
    ],
)
def test_data_that_is_wrong_is_refused_with_its_path(data: Any, path: str, problem: str) -> None:
    with pytest.raises(SessionDataError) as refused:
        generate_memory_card(data)
    assert refused.value.path == path
    assert problem in refused.value.problem
    assert str(refused.value) == f"{path}: {refused.value.problem}"


@table(
    "at",
    ["2025-01-15T10:30:00Z", "2025-01-15 10:30", "2025-01-15T10:30:00.123456+02:00", "2025-01-15",
     AT, None],
)  # fmt: skip
def test_times_in_iso_8601_are_taken(at: Any) -> None:
    data = session_of("hello")
    data["messages"][0]["timestamp"] = at
    assert generate_memory_card(data).title == "hello"


@given(MESSAGES)
@settings(max_examples=30 * FACTOR, deadline=None)
def test_any_messages_give_a_card_that_passes_its_checklist(messages: list[dict[str, str]]) -> None:
    data = {"session_id": "any", "messages": messages}
    card = generate_memory_card(data, extracted_at=AT)
    assert check_card(card, session_data=data) == []
    assert check_card(card.fields()) == []


@given(MESSAGES)
@settings(max_examples=30 * FACTOR, deadline=None)
def test_the_yaml_of_any_card_reads_back_as_its_fields(messages: list[dict[str, str]]) -> None:
    data = {"session_id": "any", "messages": messages}
    card = generate_memory_card(data, extracted_at=AT)
    text = card.to_yaml()
    assert yaml.safe_load(text) == card.fields()
    assert text == generate_memory_card(data, extracted_at=AT).to_yaml()
    text.encode()  # no halves of characters


TRICKY = [
    'He said "no" and \\"yes\\" and \\n',
    "- a: b # c",
    "null", "true", "3.5", "2025-01-15", "~", "[a, b]", "{a: b}", "*a", "&a", "!!int 3", "%a", "@a",
    "one\ntwo\r\nthree\u2028four\x85five",
    "bell \x07 null \x00 delete \x7f c1 \x9b",
    "half \ud800 and \udfff",
    "\ufeffbom \ufffe \uffff",
    "שלום \u202eעולם\u202c \u200f!",
    "zero\u200bwidth",
    "👩‍👩‍👧 👍🏽 🇮🇱 \U0010ffff",
    "   spaces   ",
    "a" * 200,
]  # fmt: skip


@table("text", TRICKY)
def test_yaml_survives_every_kind_of_content(text: str) -> None:
    fields: dict[str, Any] = dict.fromkeys(FIELDS[1:], (text, "other"))
    card = Card(title=text, session_id="s", extracted_at=AT, **fields)
    written = card.to_yaml()
    assert yaml.safe_load(written) == card.fields()
    assert written.count("\n") == 29, "each text is one line"
    written.encode()
    assert not set(written) & set("\u202e\u200f\u200b\ufeff\x00\x07\x7f\x9b")


@pytest.mark.processes
def test_the_bytes_are_the_same_in_another_process_and_locale() -> None:
    program = (
        "import sys;"
        "from tests.unit.cards.test_memory_card import AT, SESSION, session_of;"
        "from cards_app.memory_card import generate_memory_card;"
        "hebrew = session_of('ISTANBUL I i İ ı, דנה גרה בתל אביב. צריך לשלם!');"
        "cards = [generate_memory_card(data, extracted_at=AT) for data in (SESSION, hebrew)];"
        "sys.stdout.buffer.write(''.join(card.to_yaml() for card in cards).encode())"
    )
    seen = set()
    for seed, locale in (("1", "C"), ("2", "tr_TR.UTF-8")):
        other = subprocess.run(
            [sys.executable, "-c", program],
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "LC_ALL": locale,
                "LANG": locale,
                "TZ": "Asia/Jerusalem",
            },
            capture_output=True,
            check=True,
        )
        seen.add(other.stdout)
    assert len(seen) == 1
    assert seen.pop().decode().startswith(EXAMPLE_YAML)


def _long(count: int) -> Iterator[dict[str, str]]:
    for number in range(count):
        content = SESSION["messages"][number % 4]["content"]
        yield {"role": "user", "content": f"{content} That was no. {number % 50}."}


def test_messages_may_come_one_by_one() -> None:
    listed = {"session_id": "s", "messages": list(_long(40))}
    assert generate_memory_card({"session_id": "s", "messages": _long(40)}) == (
        generate_memory_card(listed)
    )


@pytest.mark.slow
def test_many_messages_take_no_more_memory_than_few() -> None:
    """What is kept are the fields and how often each word was said, never the messages."""
    # What is loaded once would count with the first.
    generate_memory_card({"session_id": "s", "messages": _long(10)})
    peaks = []
    for count in (150, 600):
        tracemalloc.start()
        generate_memory_card({"session_id": "s", "messages": _long(count)})
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 100_000
