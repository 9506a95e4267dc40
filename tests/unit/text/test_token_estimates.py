"""The estimate of tokens: four characters of Latin script a token, fewer of other scripts."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from memoryproject.foundation.text.characters import (
    characters_within,
    cut_to_tokens,
    estimate_tokens,
)

# What o200k_base, the tokenizer of the default model, makes of them.
MEASURED = [
    pytest.param("When is the delivery of the pallet invoice truck?", 10, id="English"),
    pytest.param("מתי מגיע המשלוח של הכיסאות, והאם צריך לשלם מראש את כל הסכום?", 23, id="Hebrew"),
    pytest.param("متى يصل طلب الكراسي، وهل يجب دفع المبلغ كله مقدما؟", 17, id="Arabic"),
    pytest.param("Когда привезут стулья и нужно ли платить всю сумму заранее?", 15, id="Russian"),
    pytest.param(
        "Πότε θα φτάσουν οι καρέκλες και πρέπει να πληρώσω εκ των προτέρων;", 23, id="Greek"
    ),
    pytest.param("椅子什么时候到货，需要提前付清全部款项吗？", 15, id="Chinese"),
    pytest.param("椅子はいつ届きますか。全額を前払いする必要がありますか。", 20, id="Japanese"),
    pytest.param("의자는 언제 도착하나요? 전액을 미리 지불해야 하나요?", 19, id="Korean"),
    pytest.param("कुर्सियाँ कब आएँगी और क्या पूरी रकम पहले देनी होगी?", 17, id="Hindi"),
    pytest.param("เก้าอี้จะมาถึงเมื่อไหร่ และต้องจ่ายเงินล่วงหน้าทั้งหมดไหม", 24, id="Thai"),
    pytest.param("👍🎉🚚📞🙏😀", 9, id="emoji"),
]


def test_the_seeds_examples() -> None:
    assert estimate_tokens("Hello there") == 2
    assert estimate_tokens("x" * 16_000) == 4_000
    assert estimate_tokens("  \n ") == 0
    assert estimate_tokens("") == 0


@pytest.mark.parametrize(("text", "tokens"), MEASURED)
def test_it_is_near_what_the_tokenizer_counts(text: str, tokens: int) -> None:
    assert tokens * 0.7 <= estimate_tokens(text) <= tokens * 1.5


TEXTS = st.text(max_size=300) | st.text(alphabet="ab שלום 漢字👍\n.…", max_size=300)


@given(TEXTS, TEXTS)
def test_more_text_never_has_fewer_tokens(one: str, other: str) -> None:
    assert estimate_tokens(one + other) >= estimate_tokens(one)
    assert len(one.strip()) // 4 <= estimate_tokens(one) <= 1.5 * len(one) + 1


@given(TEXTS, st.integers(-3, 120))
def test_the_longest_beginning_within_a_limit_is_found(text: str, tokens: int) -> None:
    found = characters_within(text, tokens)
    assert found == 0 or estimate_tokens(text[:found]) <= tokens
    if tokens >= 0 and found < len(text):
        longer = estimate_tokens(text[: found + 1])
        assert longer > tokens or found + 1 > 4 * (tokens + 1) - 1


@example("000000" + 3 * "\U00010000", 5)
@given(TEXTS, st.integers(1, 120))
def test_a_cut_text_is_within_its_limit(text: str, tokens: int) -> None:
    assert estimate_tokens(cut_to_tokens(text, tokens)) <= tokens


def test_a_cut_is_at_a_word_and_marked() -> None:
    assert cut_to_tokens("one two three four five six", 4) == "one two three…"
    assert cut_to_tokens("short", 4) == "short"
