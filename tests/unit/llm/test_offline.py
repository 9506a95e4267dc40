"""Answers without a language model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryproject.foundation.integrations.llm.base import ChatMessage, ChatRequest
from memoryproject.foundation.integrations.llm.offline import (
    MAX_MEMORY_LENGTH,
    OfflineChatModel,
    Reason,
    answer_from_memory,
)
from memoryproject.foundation.text.characters import cut_at_word

MEMORIES = ["TestCorp owes ₪5,000 from invoice INV-001", "טסטקורפ משלמת בכל ראשון לחודש"]


def ask(recalled: list[str], language: str) -> str:
    request = ChatRequest(
        messages=[ChatMessage("user", "a question that no answer may repeat")],
        recalled=recalled,
        language=language,
    )
    return OfflineChatModel().complete(request).text


def test_english_says_that_no_model_is_configured_and_lists_what_fits() -> None:
    assert ask(MEMORIES, "en") == (
        "No language model is configured, so I can't write a full answer. "
        "Here is what I remember that fits:\n"
        "• TestCorp owes ₪5,000 from invoice INV-001\n"
        "• טסטקורפ משלמת בכל ראשון לחודש"
    )


def test_hebrew_says_the_same_in_hebrew() -> None:
    lines = ask(MEMORIES, "he").splitlines()
    assert lines[0].startswith("לא הוגדר מודל שפה")
    assert lines[1:] == [f"• {memory}" for memory in MEMORIES]


def test_an_unknown_language_is_answered_in_english() -> None:
    assert ask(MEMORIES, "fr") == ask(MEMORIES, "en")


@pytest.mark.parametrize(
    ("language", "said"), [("en", "nothing that I remember fits"), ("he", "לא נמצא שם שום דבר")]
)
def test_nothing_recalled_is_said(language: str, said: str) -> None:
    answer = ask([], language)
    assert said in answer
    assert "•" not in answer
    assert answer == ask(["  ", "\n"], language)


@pytest.mark.parametrize("language", ["en", "he"])
def test_every_reason_has_its_own_text(language: str) -> None:
    reasons: tuple[Reason, ...] = ("not_configured", "unavailable")
    answers = {
        answer_from_memory(recalled, language, reason=reason)
        for reason in reasons
        for recalled in ([], MEMORIES)
    }
    assert len(answers) == 4


def test_a_failed_model_is_not_called_unconfigured() -> None:
    assert "can't reach my language model" in answer_from_memory(
        MEMORIES, "en", reason="unavailable"
    )
    assert "try again" in answer_from_memory([], "en", reason="unavailable")
    assert "אין כרגע גישה למודל השפה" in answer_from_memory(MEMORIES, "he", reason="unavailable")


def test_only_the_best_five_are_listed_each_once() -> None:
    recalled = ["fact 1", "fact  1", *(f"fact {number}" for number in range(2, 9))]
    assert ask(recalled, "en").splitlines()[1:] == [f"• fact {n}" for n in range(1, 6)]


def test_a_memory_of_several_lines_stays_one_entry() -> None:
    assert ask(["first line\n\n• second line"], "en").endswith("\n• first line • second line")


def test_a_long_memory_is_cut_between_words() -> None:
    memory = "word " * 100
    entry = ask([memory], "en").splitlines()[1].removeprefix("• ")
    assert entry.endswith("word…")
    assert MAX_MEMORY_LENGTH - 5 < len(entry) <= MAX_MEMORY_LENGTH


@given(st.text(), st.integers(min_value=2, max_value=40))
def test_a_cut_text_is_bounded_and_a_beginning_of_the_whole(text: str, longest: int) -> None:
    cut = cut_at_word(text, longest)
    assert len(cut) <= longest
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))


def test_before_attempt_is_called_and_no_tokens_are_claimed() -> None:
    calls: list[str] = []
    completion = OfflineChatModel().complete(
        ChatRequest(messages=[]), before_attempt=lambda: calls.append("renew")
    )
    assert calls == ["renew"]
    assert (completion.model, completion.attempts) == ("offline", 1)
    assert (completion.prompt_tokens, completion.completion_tokens) == (None, None)
