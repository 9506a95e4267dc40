"""Answers without a language model."""

from __future__ import annotations

from hypothesis import given, strategies as st

from memoryproject.foundation.integrations.llm.base import (
    MAX_MEMORY_LENGTH,
    ChatMessage,
    ChatRequest,
    OfflineChatModel,
)
from memoryproject.foundation.text.characters import cut_at_word

MEMORIES = ["TestCorp owes ₪5,000 from invoice INV-001", "טסטקורפ משלמת בכל ראשון לחודש"]


def ask(recalled: list[str]) -> str:
    request = ChatRequest(
        messages=[ChatMessage("user", "a question that no answer may repeat")], recalled=recalled
    )
    return OfflineChatModel().complete(request).text


def test_it_lists_what_was_recalled() -> None:
    assert ask(MEMORIES).splitlines() == [f"• {memory}" for memory in MEMORIES]


def test_nothing_recalled_is_an_empty_answer() -> None:
    assert ask([]) == ask(["  ", "\n"]) == ""


def test_only_the_best_five_are_listed_each_once() -> None:
    recalled = ["fact 1", "fact  1", *(f"fact {number}" for number in range(2, 9))]
    assert ask(recalled).splitlines() == [f"• fact {n}" for n in range(1, 6)]


def test_a_memory_of_several_lines_stays_one_entry() -> None:
    assert ask(["first line\n\n• second line"]) == "• first line • second line"


def test_a_long_memory_is_cut_between_words() -> None:
    memory = "word " * 100
    entry = ask([memory]).removeprefix("• ")
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
