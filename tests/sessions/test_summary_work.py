"""The work of summing up: failing models, two workers at once, messages that change or go."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import override_settings
from django.utils import timezone

from memoryproject.foundation.integrations.llm.base import ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.history.strategies import SummarizationStrategy
from sessions_app.models import Message, SummaryWork, Turn
from sessions_app.models.chats import Limits
from sessions_app.summaries.summarizer import Summarizer
from sessions_app.summaries.summary_store import (
    excerpts_waiting,
    summaries_abandoned,
    summary_request,
)
from sessions_app.sweeps import summaries_due
from tests.events import revocation
from tests.sessions.summing import summaries, talk_to
from tests.world import CLIENT, World, message_from


class TestAFailingModel:
    @pytest.fixture
    def model(self, world: World) -> list[Exception | str]:
        """What the summarizer's model does next; "A fact." once the list is empty."""
        script: list[Exception | str] = []

        def answer(_: ChatRequest) -> str:
            step = script.pop(0) if script else "A fact."
            if isinstance(step, Exception):
                raise step
            return step

        world.summarizing(2, summarizer=Summarizer(chat_model=ScriptedChatModel(answer)))
        return script

    def test_it_is_tried_again_later(self, world: World, model: list[Exception | str]) -> None:
        model.append(ChatModelError("down"))
        talk_to(world, 1)
        assert world.sum_up(CLIENT) == 0
        work = SummaryWork.objects.get()
        assert work.due
        assert work.lease_token is None
        assert "down" in work.error
        assert work.not_before is not None
        assert summaries_abandoned(timezone.now()) == []
        later = timezone.now() + timedelta(minutes=1)
        abandoned = summaries_abandoned(later)
        assert len(abandoned) == 1

        SummaryWork.objects.update(not_before=None)
        assert world.rules.chat_memory.manage(conversation_id=abandoned[0]) == 1
        assert summaries()[0].digest == "- A fact."
        assert SummaryWork.objects.get().error == ""

    def test_three_failures_give_excerpts(self, world: World, model: list[Exception | str]) -> None:
        model += [ChatModelError("down")] * 3
        talk_to(world, 1)
        for tries in range(3):
            assert world.sum_up(CLIENT) == (1 if tries == 2 else 0)
            SummaryWork.objects.update(not_before=None)
        assert summaries()[0].is_extractive

    def test_a_permanent_failure(self, world: World, model: list[Exception | str]) -> None:
        model.append(ChatModelError("no such model", permanent=True))
        talk_to(world, 1)
        assert world.sum_up(CLIENT) == 1
        assert summaries()[0].is_extractive


class TestOneAtATime:
    def test_who_lost_the_lease_stores_nothing(self, world: World) -> None:
        """Another worker takes over while the model is thinking."""

        def steal(_: ChatRequest) -> str:
            SummaryWork.objects.update(lease_token=None)
            return "late"

        world.summarizing(2, summarizer=Summarizer(chat_model=ScriptedChatModel(steal)))
        talk_to(world, 1)
        assert world.sum_up(CLIENT) == 0
        assert summaries() == []
        assert [message.role for message in world.messages(CLIENT)] == ["user", "assistant"]

    def test_a_message_at_the_last_moment_is_summed_up(self, world: World) -> None:
        """The hook finds the work marked as due while the worker is about to end it."""

        def answer(_: ChatRequest) -> str:
            if session.message_counter < 4:
                world.receive(message_from(CLIENT, "late 1"), message_from(CLIENT, "late 2"))
                session.refresh_from_db()
                strategy.post_add_messages_hook(session=session)
            return "fine"

        strategy = world.summarizing(2, summarizer=Summarizer(chat_model=ScriptedChatModel(answer)))
        talk_to(world, 1)
        session = world.session(CLIENT)
        assert world.sum_up(CLIENT) == 2


class TestChangedMessages:
    def test_a_message_edited_while_it_is_summed_up_is_read_again(self, world: World) -> None:
        digests: list[str] = []

        def answer(request: ChatRequest) -> str:
            if not digests:
                message = Message.objects.get(content="five")
                world.rules.chat_memory.retext(message=message, content="six")
            digests.append(request.messages[1].content)
            return "An answer."

        world.summarizing(2, summarizer=Summarizer(chat_model=ScriptedChatModel(answer)))
        world.say(CLIENT, "five")
        assert world.sum_up(CLIENT) == 1
        assert ["client: five" in each for each in digests] == [True, False]
        assert "client: six" in digests[1]

    def test_an_edit_takes_its_summary_back_and_those_after_it(self, world: World) -> None:
        world.summarizing(2)
        talk_to(world, 4)
        world.sum_up(CLIENT)
        assert len(summaries()) == 4
        message = Message.objects.get(content="fact 2")
        world.rules.chat_memory.retext(message=message, content="fact two")
        session = world.session(CLIENT)
        assert session.summarized_until == 2
        assert len(summaries()) == 1
        window = Message.objects.filter(session=session, order_num__gte=session.window_start)
        assert session.total_tokens == sum(each.tokens for each in window)
        assert world.sum_up(CLIENT) == 3
        assert [each.first_order for each in summaries()] == [1, 3, 5, 7]

    def test_a_revoked_message_is_in_no_summary_and_no_prompt_any_more(self, world: World) -> None:
        model = ScriptedChatModel(lambda request: request.messages[1].content)
        world.summarizing(4, summarizer=Summarizer(chat_model=model))
        world.with_chat_memory(limits=Limits(client=400))
        secret = message_from(CLIENT, "My PIN is 4711")
        world.receive(secret)
        world.work()
        world.say(CLIENT, "Anything else?")
        world.sum_up(CLIENT)
        world.say(CLIENT, "Go on")
        assert "4711" in repr(Turn.objects.latest("id").replay.prompt)
        world.receive(revocation(secret.provider_message_id))
        kept = [message for message in world.messages(CLIENT) if message.role != "assistant"]
        assert "4711" not in repr([message.content for message in kept])
        for turn in Turn.objects.filter(message__content="Go on"):
            assert "My PIN is 4711" not in repr(turn.replay.prompt)
            assert "client: My PIN" not in repr(turn.replay.prompt)
        assert summaries() == []
        world.sum_up(CLIENT)
        assert "My PIN" not in repr([each.digest for each in summaries()]).replace(
            "answer to: My PIN", ""
        )


class TestDeletedSources:
    @pytest.fixture
    def deleting(self, world: World) -> SummarizationStrategy:
        return world.summarizing(4, delete_summarized_messages=True)

    def test_only_the_messages_go(self, world: World, deleting: SummarizationStrategy) -> None:
        talk_to(world, 2)
        ids = [message.pk for message in world.messages(CLIENT)]
        assert world.sum_up(CLIENT) == 1
        (made,) = summaries()
        assert made.summarized_message_ids == ids
        assert made.sources_deleted
        assert [message.role for message in world.messages(CLIENT)] == ["summary"]
        session = world.session(CLIENT)
        assert session.total_tokens == made.summary_message.tokens
        assert session.message_counter == 5
        assert [turn.state for turn in Turn.objects.all()] == ["sent", "sent"]

        world.say(CLIENT, "Go on")
        assert "Summary of the conversation so far" in world.prompt()[0].content
        assert [each.content for each in world.prompt()[1:]] == ["Go on"]
        assert [message.order_num for message in world.messages(CLIENT)] == [5, 6, 7]

    def test_what_is_unanswered_stays(self, world: World, deleting: SummarizationStrategy) -> None:
        world.receive(*(message_from(CLIENT, f"m{number}") for number in range(4)))
        assert world.sum_up(CLIENT) == 0
        world.work()
        assert len(world.provider.sent) == 4
        assert world.sum_up(CLIENT) == 2


class TestDeletedSourcesAndAModelThatIsAway:
    @pytest.fixture
    def is_away(self, world: World) -> list[bool]:
        """Whether the summarizer's model is away: while the list holds something."""
        away: list[bool] = [True]

        def answer(_: ChatRequest) -> str:
            if away:
                raise ChatModelError("down", permanent=True)
            return "fact by the model"

        summarizer = Summarizer(chat_model=ScriptedChatModel(answer))
        world.summarizing(4, summarizer=summarizer, delete_summarized_messages=True)
        return away

    def sweep(self, world: World, later: timedelta = timedelta(0)) -> int:
        """What the sweep of each minute does."""
        found = excerpts_waiting(timezone.now() + later)
        for session_id in found:
            summary_request(session_id)
            world.rules.chat_memory.manage(conversation_id=session_id)
        return len(found)

    def contents(self, world: World) -> list[str]:
        return [each.content for each in world.messages(CLIENT) if each.role != "summary"]

    def test_messages_stay_with_excerpts_only(self, world: World, is_away: list[bool]) -> None:
        talk_to(world, 2)
        said = self.contents(world)
        assert world.sum_up(CLIENT) == 1
        (made,) = summaries()
        assert (made.is_extractive, made.sources_deleted) == (True, False)
        assert self.contents(world) == said
        assert world.session(CLIENT).summarized_until == 4

    def test_they_go_when_the_model_is_back(self, world: World, is_away: list[bool]) -> None:
        for start in (1, 3):
            talk_to(world, 2, start)
            assert world.sum_up(CLIENT) == 1
        is_away.clear()
        assert self.sweep(world, timedelta(minutes=5)) == 0, "it was tried a moment ago"
        assert self.sweep(world, timedelta(hours=2)) == 1
        first, second = summaries()
        for made in (first, second):
            assert (made.is_extractive, made.sources_deleted) == (False, True)
            assert made.digest == "- fact by the model"
        # The summary of the first four messages was number 5.
        assert [each.first_order for each in (first, second)] == [1, 6]
        assert self.contents(world) == []
        session = world.session(CLIENT)
        assert session.total_tokens == sum(each.tokens for each in world.messages(CLIENT))
        assert "excerpts" not in second.summary_message.content
        assert self.sweep(world, timedelta(days=30)) == 0, "nothing is left to do"

    def test_they_stay_without_the_model(self, world: World, is_away: list[bool]) -> None:
        talk_to(world, 2)
        world.sum_up(CLIENT)
        said, made = self.contents(world), summaries()
        for hours in range(2, 50, 2):
            assert self.sweep(world, timedelta(hours=hours)) == 1
        assert self.contents(world) == said
        assert summaries() == made
        assert SummaryWork.objects.filter(due=True).count() == 0

    @override_settings(CHAT_MEMORY_STRATEGY="summarize", DELETE_SUMMARIZED_MESSAGES=True)
    def test_the_sweep_of_each_minute_finds_them(self, world: World, is_away: list[bool]) -> None:
        talk_to(world, 2)
        world.sum_up(CLIENT)
        kinds = {kind.name: kind for kind in summaries_due()}
        assert kinds["excerpts"].sweep(timezone.now() + timedelta(hours=2)) == 1
        assert SummaryWork.objects.get().due


class TestNothingToSumUp:
    @pytest.mark.parametrize("delete", [False, True])
    def test_commands_alone_get_no_summary(self, world: World, delete: bool) -> None:
        world.summarizing(4, delete_summarized_messages=delete)
        for number in range(2):
            world.say(CLIENT, f"/remember fact {number}")
        assert world.sum_up(CLIENT) == 0
        assert summaries() == []
        assert world.session(CLIENT).summarized_until == 4
        assert len(world.messages(CLIENT)) == (0 if delete else 4)
        talk_to(world, 2)
        assert world.sum_up(CLIENT) == 1
        (made,) = summaries()
        assert (made.number, made.first_order) == (1, 5)
        assert made.summary_message.content

    def test_a_model_that_says_nothing_is_replaced_by_excerpts(self, world: World) -> None:
        silent = Summarizer(chat_model=ScriptedChatModel(lambda _: " \n "))
        world.summarizing(4, summarizer=silent, delete_summarized_messages=True)
        talk_to(world, 2)
        assert world.sum_up(CLIENT) == 1
        (made,) = summaries()
        assert made.is_extractive
        assert "fact 1" in made.summary_message.content
        assert len(world.messages(CLIENT)) == 5
