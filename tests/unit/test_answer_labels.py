"""The speaker before an answer, and what a model repeats without end, aren't sent."""

from __future__ import annotations

from sessions_app.turns.prompt import without_labels, without_loop
from tests.tables import table


@table(
    ("answer", "left"),
    [
        ("DeniDin: Visible.", "Visible."),
        ("[2026-11-30 09:34] DeniDin: Visible.", "Visible."),
        ("Assistant: Visible.", "Visible."),
        ("AI: Visible.", "Visible."),
        ("Denidin: Visible.", "Visible."),
        ("**DeniDin:** Visible.", "Visible."),
        ("*DeniDin*: Visible.", "Visible."),
        ("DeniDin:\nVisible.", "Visible."),
        ("[09:34] DeniDin: Visible.", "Visible."),
        ("[30.11.2026, 09:34] DeniDin: Visible.", "Visible."),
        ("עוזר: Visible.", "Visible."),
        ("Bot: Visible.", "Visible."),
        ("Asistente: Visible.", "Visible."),
        ("Assistente: Visible.", "Visible."),
        ("Ассистент: Visible.", "Visible."),
        ("助手：Visible.", "Visible."),
        ("المساعد: Visible.", "Visible."),
        ("Assistant (DeniDin): Visible.", "Visible."),
        ("DeniDin (assistant): Visible.", "Visible."),
        ("DeniDin: We open:\nMonday: 9\nSunday: 10", "We open:\nMonday: 9\nSunday: 10"),
        ("DeniDin - Visible.", "DeniDin - Visible."),
        ("DeniDin is my name.", "DeniDin is my name."),
        ("Assistant: Noa\nManager: Dana", "Assistant: Noa\nManager: Dana"),
        (
            "AI: artificial intelligence\nML: machine learning",
            "AI: artificial intelligence\nML: machine learning",
        ),
        ("Assistants: two of them", "Assistants: two of them"),
        ("The assistant: Noa", "The assistant: Noa"),
        ("Dana: Visible.", "Dana: Visible."),
        (
            "[2026-11-30 09:34] Dentist\n[2026-12-01 10:00] Haircut",
            "[2026-11-30 09:34] Dentist\n[2026-12-01 10:00] Haircut",
        ),
        ("DeniDin: Hi\nBob: Hi\nDeniDin: Bye", "DeniDin: Hi\nBob: Hi\nDeniDin: Bye"),
        ("Bottle: 5 shekels", "Bottle: 5 shekels"),
        ("AI: 5 shekels\nBot: 6 shekels", "AI: 5 shekels\nBot: 6 shekels"),
        ("Note: AI: yes", "Note: AI: yes"),
        ("Assistant manager: Noa", "Assistant manager: Noa"),
        ("Noa: 5\nDeniDin: 6", "Noa: 5\nDeniDin: 6"),
        ("DeniDin: 050-1234567\nDan: 050-7654321", "DeniDin: 050-1234567\nDan: 050-7654321"),
        ("Model: T-100", "Model: T-100"),
        ("[2026-11-30T09:34] DeniDin: Hi", "Hi"),
        ("*Assistant:* Hi", "Hi"),
        ("DeniDin's Bakery: open", "DeniDin's Bakery: open"),
        ("DeniDin：您好", "您好"),
    ],
)
def test_the_speaker_before_an_answer_is_removed(answer: str, left: str) -> None:
    assert without_labels(answer, "DeniDin") == left


def test_an_assistant_without_a_name_has_none_removed() -> None:
    assert without_labels(": Visible.") == ": Visible."


@table(
    ("answer", "left"),
    [
        ("We open at nine. " * 400, "We open at nine."),
        ("We open at nine. " * 40 + "We op", "We open at nine."),
        ("x" * 30_000, "x"),
        ("Visible one two three.\n\nVisible one two three.", "Visible one two three."),
        (
            "A, B. " + "Then we close at five, and open again. " * 30,
            "A, B. Then we close at five, and open again.",
        ),
        ("Line one is here.\nLine two is here.\n" * 20, "Line one is here.\nLine two is here."),
        ("ha " * 400, "ha"),
        ("אנחנו פותחים בתשע. " * 50, "אנחנו פותחים בתשע."),
        ("我们九点开门。" * 60, "我们九点开门。"),
        ("We open at nine.\n\n" * 3 + "We open at nine.", "We open at nine."),
        ("👍" * 400, "👍"),
        ("no, " * 200 + "no", "no,"),
        ("Please wait. One moment. " * 60, "Please wait. One moment."),
        ("- item\n" * 120, "- item"),
        ("we open at nine and " * 50, "we open at nine and"),
        ("Hours.\n\n" + "We open at nine.\n" * 80 + "End.", "Hours.\n\nWe open at nine.\nEnd."),
        ("السلام عليكم. " * 60, "السلام عليكم."),
    ],
)
def test_of_a_loop_one_is_left(answer: str, left: str) -> None:
    assert without_loop(answer, "When do you open?") == left


@table(
    "answer",
    [
        "Yes. Yes. Yes. Yes.",
        "Ha ha ha ha!",
        "Hip hip hurray! Hip hip hurray! Hip hip hurray!",
        "Guest: ________\nGuest: ________\nGuest: ________\nGuest: ________\nGuest: ________",
        "1000000000000000",
        "Row, row, row your boat",
        "Thanks!\n\nThanks!",
        "We open at nine.\n\nWe close at five.",
        "Hmmmmmmm",
        "----------------------------------------",
        "9:00 free\n10:00 free\n11:00 free\n12:00 free",
        "No.\n\nNo.",
        "First verse here.\n\nRefrain of the song.\n\nSecond verse here.\n\nRefrain of the song.",
        "🎉🎉🎉🎉🎉🎉🎉🎉",
        "A B A B A B A B",
        "***",
        "La la la la la la la la la la la la",
        "Mon 9-5\nTue 9-5\nWed 9-5",
        "=====\nTitle\n=====",
        "0.3333333333333333",
        "Dear Dana,\n\nThank you.\n\nDear Noa,\n\nThank you.",
        "x" * 60,
    ],
)
def test_an_answer_that_repeats_something_stays(answer: str) -> None:
    assert without_loop(answer, "When do you open?") == answer


def test_what_the_person_asked_for_is_repeated() -> None:
    lines = "I must not talk.\n" * 50
    assert without_loop(lines, "Write fifty times: I must not talk.") == lines
    words = "a " * 500
    assert without_loop(f"You said: {words}!", f"Look: {words}!") == f"You said: {words}!"
