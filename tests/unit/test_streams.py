"""The open streams of one process, with a question that the tests answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

import pytest
from django.db import OperationalError

from memoryproject.staff_site.live.stream_server import FullError, Limits, Listener, Streams

DANA = Listener("session of Dana", 1)
PATIENCE_SECONDS = 60.0


class Question:
    """Counts how often it is asked; each next answer waits until it is given."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[object] = asyncio.Queue()
        self.asked = 0

    async def ask(self) -> object:
        self.asked += 1
        answer = await self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def answer(self, *answers: object) -> None:
        """Give answers, and wait until the last one is taken and the next question is there."""
        wanted = self.asked + len(answers)
        for each in answers:
            self.answers.put_nowait(each)
        while self.asked < wanted:
            await asyncio.sleep(0)


def played(scene: Callable[[Streams, Question], Awaitable[None]], **limits: int) -> None:
    async def play() -> None:
        question = Question()
        await scene(Streams(question.ask, limits=Limits(**limits), every=0), question)

    asyncio.run(asyncio.wait_for(play(), PATIENCE_SECONDS))


async def asked(question: Question) -> None:
    while not question.asked:
        await asyncio.sleep(0)


def test_nothing_is_asked_without_streams() -> None:
    async def scene(streams: Streams, question: Question) -> None:
        with streams.opened(DANA):
            await asked(question)
            await question.answer("a", "b")
        before = question.asked
        question.answers.put_nowait("c")
        for _ in range(10):
            await asyncio.sleep(0)
        assert question.asked == before

    played(scene)


def test_one_question_serves_all_streams() -> None:
    async def scene(streams: Streams, question: Question) -> None:
        with streams.opened(DANA) as one, streams.opened(DANA) as other:
            await asked(question)
            await question.answer("a")
            assert one.take_news()
            assert other.take_news()
            await question.answer("a", "a")
            assert not one.take_news()
            await question.answer("b")
            assert one.take_news()
            assert other.take_news()
            assert question.asked == 5

    played(scene)


def test_each_stream_begins_with_news_once_it_is_known_what_is_compared() -> None:
    async def scene(streams: Streams, question: Question) -> None:
        with streams.opened(DANA) as first:
            assert not first.take_news()
            await asked(question)
            await question.answer("a")
            assert first.take_news()
            with streams.opened(DANA) as later:
                assert later.take_news()
                assert not first.take_news()
        # What is known is old by the time of the next stream.
        with streams.opened(DANA) as again:
            assert not again.take_news()

    played(scene)


def test_streams_stay_while_the_database_is_away(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(streams: Streams, question: Question) -> None:
        with streams.opened(DANA) as stream:
            await asked(question)
            await question.answer("a")
            assert stream.take_news()
            await question.answer(OperationalError("away"), OperationalError("away"))
            assert not stream.take_news()
            assert not stream.is_over
            await question.answer("b")
            assert stream.take_news()

    played(scene)
    # Once, and not once a second.
    assert [record.getMessage() for record in caplog.records] == [
        "The database can't be asked for news."
    ]


def test_news_that_nobody_took_are_told_once() -> None:
    """A client that takes nothing holds no memory."""

    async def scene(streams: Streams, question: Question) -> None:
        with streams.opened(DANA) as stream:
            await asked(question)
            await question.answer("a", "b", "c")
            await stream.wait(PATIENCE_SECONDS)
            assert stream.take_news()
            assert not stream.take_news()

    played(scene)


def test_all_streams_can_be_ended() -> None:
    async def scene(streams: Streams, question: Question) -> None:
        with streams.opened(DANA) as stream:
            waiting = asyncio.create_task(stream.wait(PATIENCE_SECONDS))
            await asyncio.sleep(0)
            streams.end()
            await waiting
            assert stream.is_over

    played(scene)


@pytest.mark.parametrize(
    ("limits", "others"),
    [
        ({"of_session": 2}, [DANA, DANA]),
        ({"of_account": 2}, [DANA, Listener("another browser of Dana", 1)]),
        ({"in_all": 2}, [DANA, Listener("session of Omar", 2)]),
    ],
    ids=["of a session", "of an account", "in all"],
)
def test_there_are_limits(limits: dict[str, int], others: list[Listener]) -> None:
    async def scene(streams: Streams, question: Question) -> None:
        with ExitStack() as stack:
            for other in others:
                stack.enter_context(streams.opened(other))
            with pytest.raises(FullError), streams.opened(DANA):
                pass
            assert len(streams) == 2
        with streams.opened(DANA):
            assert len(streams) == 1

    played(scene, **limits)


def test_sessions_of_others_dont_count() -> None:
    async def scene(streams: Streams, question: Question) -> None:
        with streams.opened(DANA), streams.opened(Listener("session of Omar", 2)):
            assert len(streams) == 2

    played(scene, of_session=1, of_account=1)
