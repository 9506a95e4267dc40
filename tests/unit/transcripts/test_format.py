"""The text of transcripts: what goes in comes out, and each rule has its own error."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import example, given, strategies as st

from sessions_app.transcript_files.parse_transcript import (
    ASSISTANT,
    MAX_FILE_SIZE,
    MAX_PROBLEMS,
    USER,
    Problem,
    message_text,
    messages_in,
)
from tests.tables import table
from tests.transcripts.texts import parse, write

GOOD = b"User: Hello\nAssistant: Good morning\n"

# Pieces that are near to what the format itself is made of.
PIECES = st.sampled_from(
    ["User:", "Assistant:", "User: ", "\n", "\\", "\r\n", "\r", " ", "\t", "\x0b", "\x85", "\u2028"]
    + ["\x01", "\ufeff", "🙂", "👩‍👩‍👧", "שלום", "\u202eabc", "é", "e\u0301", "ا", "user:", "x"]
)
ANY_TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
CONTENT = st.one_of(ANY_TEXT, st.lists(PIECES, max_size=12).map("".join))
SAID = CONTENT.filter(lambda text: bool(text.strip()))


def alternating(contents: list[str]) -> list[tuple[str, str]]:
    return [((USER, ASSISTANT)[place % 2], content) for place, content in enumerate(contents)]


def pairs(data: bytes) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in parse(data).messages]


def problems_of(data: bytes) -> list[Problem]:
    return parse(data, file="chat_memory_batch_001.txt").problems


def codes(data: bytes) -> list[str]:
    return [problem.code for problem in problems_of(data)]


@given(st.lists(st.tuples(SAID, SAID), min_size=1, max_size=6))
@example([("User: x", "\\User: y"), ("a\nUser: b\n\\\\Assistant: c", "\n\nAssistant:\n")])
@example([("one\r\ntwo\r", "\r\n."), (" leading", "trailing \n\n")])
def test_alternating_messages_come_back_byte_for_byte(said: list[tuple[str, str]]) -> None:
    """Rule 7: exact content preservation."""
    messages = alternating([content for pair in said for content in pair])
    data = write(messages)
    parsed = parse(data)
    assert [(message.role, message.content) for message in parsed.messages] == messages
    assert parsed.problems == []
    assert write(pairs(data)) == data


@given(st.lists(st.tuples(st.sampled_from([USER, ASSISTANT]), CONTENT)))
def test_any_messages_come_back(messages: list[tuple[str, str]]) -> None:
    text = "".join(message_text(role=role, content=content) for role, content in messages)
    assert [(message.role, message.content) for message in messages_in(text)] == messages


def test_a_million_characters_come_back() -> None:
    long = ("שלום 🙂 User: \\\n\\User: " * 50_000)[:1_000_000]
    messages = alternating([long, "\\" * 1_000_000 + "User:"])
    assert pairs(write(messages)) == messages


@given(st.one_of(st.binary(), st.lists(PIECES).map("".join).map(str.encode)))
@example(b"User: \xff")
@example(b"\xef\xbb\xbf" + GOOD)
@example(b"\x00")
def test_any_bytes_give_messages_or_a_listed_problem(data: bytes) -> None:
    parsed = parse(data, file="x.txt")
    for problem in parsed.problems:
        assert problem.file == "x.txt"
        assert problem.what
        assert problem.mend
        assert problem.line is None or 1 <= problem.line <= data.count(b"\n") + 1
    if not parsed.problems:
        assert parsed.messages
        again = write([(message.role, message.content) for message in parsed.messages])
        text = data.decode().removeprefix("\ufeff")
        assert again.decode() == text + ("" if again.decode() == text else "\n")


RULE_EXAMPLES = [
    (1, "starts_with_user", b"Assistant: Hi\nUser: a\nAssistant: b\n", 1),
    (1, "starts_with_user", b"\nUser: a\nAssistant: b\n", 1),
    (2, "alternates", b"User: a\nUser: b\nAssistant: c\n", 2),
    (3, "ends_with_assistant", b"User: a\nAssistant: b\nUser: c\n", 3),
    (4, "consecutive", b"User: a\nAssistant: b\nc\nAssistant: d\n", 4),
    (5, "too_few_messages", b"User: a\n", 1),
    (5, "too_few_messages", b"", None),
    (6, "spacing", b"User:a\nAssistant: b\n", 1),
    (6, "spacing", b"User: a\nAssistant:\tb\n", 2),
    (6, "spacing", b"User:\na\nAssistant: b\n", 1),
    (7, "not_exact", b"User: a\nAssistant: \xe9\n", 2),
    (7, "not_exact", b"User: a\nAssistant: b\n\x00\n", 3),
    (7, "not_exact", GOOD.decode().encode("utf-16"), 1),
]


@table(("rule", "code", "data", "line"), RULE_EXAMPLES)
def test_each_rule_has_its_own_error(rule: int, code: str, data: bytes, line: int | None) -> None:
    (problem,) = [problem for problem in problems_of(data) if problem.code == code]
    assert (problem.rule, problem.line) == (rule, line)
    assert str(problem).startswith("chat_memory_batch_001.txt")
    assert f"rule {rule}: " in str(problem)


def test_a_message_of_white_space_fails_the_minimum_size() -> None:
    assert codes("User: \u2003\n\t\nAssistant: b\n".encode()) == ["blank_message"]
    assert codes(b"User: \nAssistant: b\n") == ["blank_message"]


def test_every_problem_is_told_not_just_the_first() -> None:
    found = codes(b"Assistant:a\nAssistant: b\nUser:  \n")
    assert found == [
        *("starts_with_user", "spacing", "alternates", "consecutive"),
        *("blank_message", "ends_with_assistant"),
    ]


def test_what_else_is_wrong_is_told_beside_bytes_that_are_no_text() -> None:
    assert codes(b"Assistant:a\nAssistant: \xe9\nUser:  \n") == [
        *("not_exact", "starts_with_user", "spacing", "alternates", "consecutive"),
        *("blank_message", "ends_with_assistant"),
    ]


def test_of_many_problems_the_first_are_told_and_the_rest_counted() -> None:
    parsed = parse(b"User:x\nAssistant:y\n" * 1_000)
    assert len(parsed.problems) == MAX_PROBLEMS
    assert parsed.further == 2_000 - MAX_PROBLEMS


def test_no_problem_quotes_what_somebody_wrote() -> None:
    for problem in problems_of(b"secret\nUser:secret\nUser: secret\n"):
        assert "secret" not in str(problem)


def test_one_space_is_the_formats_and_the_others_are_the_messages() -> None:
    assert pairs(b"User:  a\nAssistant: \n b \n") == [(USER, " a"), (ASSISTANT, "\n b ")]


def test_exactly_one_line_feed_ends_a_message() -> None:
    assert pairs(b"User: a\n\nAssistant: b\n\n") == [(USER, "a\n"), (ASSISTANT, "b\n")]
    assert pairs(b"User: a\nAssistant: b") == [(USER, "a"), (ASSISTANT, "b")]


def test_a_byte_order_mark_at_the_start_belongs_to_no_message() -> None:
    assert pairs(b"\xef\xbb\xbf" + GOOD) == pairs(GOOD)


def test_one_leading_backslash_is_taken_away_and_only_from_speakers_lines() -> None:
    text = b"User: \\User: a\n\\User: b\n\\\\User: c\n\\x\nAssistant: d\n"
    assert pairs(text)[0] == (USER, "\\User: a\nUser: b\n\\User: c\n\\x")


def test_carriage_returns_at_every_end_are_kept_and_noted() -> None:
    parsed = parse(GOOD.replace(b"\n", b"\r\n"))
    assert [message.content for message in parsed.messages] == ["Hello\r", "Good morning\r"]
    assert parsed.notes
    assert "carriage return" in parsed.notes[0]
    assert parse(GOOD).notes == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"User: a\r\nAssistant: b\r\nUser: c\r\nAssistant: d", "carriage return"),
        (b"User: a\n\nAssistant: b\n\nUser: c\n\nAssistant: d\n", "blank line"),
    ],
)
def test_line_ends_that_only_the_last_message_lacks_are_noted(data: bytes, said: str) -> None:
    parsed = parse(data)
    assert parsed.problems == []
    assert [said in note for note in parsed.notes] == [True]


@pytest.mark.parametrize("line", [b"user: b", b" User: b", b"ASSISTANT : b"])
def test_what_is_almost_a_speakers_line_is_noted(line: bytes) -> None:
    parsed = parse(b"User: a\nAssistant: b\n" + line + b"\n", file="f.txt")
    assert parsed.problems == []
    assert parsed.notes[0].startswith("f.txt, line 3: ")


def test_too_large_a_file_is_refused() -> None:
    assert codes(b"User: " + b"a" * MAX_FILE_SIZE) == ["too_large"]


HOSTILE = [
    "\\", "User:", "\n", "User:\n", "\\User:\n", " ", "User: \n", "\r\n", "user ", "\\\\\nUser",
    "A", "Assistant: ", "\x00\n", "\n\\",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.slow
def test_reading_takes_linear_time(piece: str) -> None:
    """Counted in steps of the interpreter's allocator, not in seconds: twice the input, at most
    a little more than twice the memory that was ever held; and a megabyte comes to an end."""

    def peak(size: int) -> int:
        data = (piece * (size // len(piece))).encode()
        tracemalloc.start()
        parse(data)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return held

    once = peak(40_000)
    assert peak(80_000) <= 2.5 * once + 100_000
    parse((piece * (1_000_000 // len(piece))).encode())
