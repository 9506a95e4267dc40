"""Creates the story: every message goes through the services that webhooks and workers call.

So turns, replays, memories, receipts and the audit log are as in real use.
"""

import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils import timezone

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.integrations.llm.base import ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.media_storage.storage_choice import (
    configured_media_storage,
)
from memoryproject.foundation.integrations.whatsapp import base as whatsapp, events
from memoryproject.staff_site.demo import staff_actions, story_texts
from sessions_app.history import chat_memory, strategies
from sessions_app.inbound.facade import IntakeRules, events_receive
from sessions_app.limits.intake import UsageLimits
from sessions_app.media.fetch import MediaDependencies, media_fetch, media_row_create
from sessions_app.models import Chat, MediaFile, Turn, TurnReplay
from sessions_app.models.deliveries import PartState
from sessions_app.summaries.summarizer import SKILLS, Summarizer
from sessions_app.turns.facade import Dependencies, chat_answer, turn_update_state

NUMBER_IDS = {"cloud": "100000000000001", "green": "1101000001"}
MODEL = "gpt-4o-mini"
# The threshold of messages for a summary here: the longest conversation has some twenty.
SUM_UP_EVERY = 12
DAYS = 30
MAX_BYTES = 1_000_000
STEPS = {"sent": 1, "delivered": 2, "read": 3}
FAILURES = {
    "failed": whatsapp.SendError("HTTP 401: Invalid OAuth access token", permanent=True, code=190),
    "unconfirmed": whatsapp.SendError(
        ErrorText("send_connection_broke", kind="ReadTimeout"), outcome_unknown=True
    ),
}


class StoryProvider(whatsapp.ConsoleProvider):
    """A provider of the story, under the name of a real one: nothing leaves the machine.

    ``sent``: the texts. ``files``: those that people send, by their names. ``failure``: raised by
    the next message.
    """

    def __init__(self, name: str, text_limit: int = 4096) -> None:
        self.name, self.text_limit = name, text_limit
        self.sent: list[str] = []
        self.files: dict[str, bytes] = {}
        self.failure: whatsapp.SendError | None = None

    def send_text(self, *, text: Any = "", **_message: object) -> whatsapp.SendResult:
        """Keep the text, or raise the failure."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        self.sent.append(text)
        return super().send_text()

    send_file = send_text

    def send_template(
        self, *, template: whatsapp.Template, **_message: object
    ) -> whatsapp.SendResult:
        """Keep the template's name and values."""
        return self.send_text(text="\n".join([template.name, *template.parameters]))

    def fetch_media(
        self, *, media: events.Media, into: whatsapp.MediaSink, **_message: object
    ) -> None:
        """Write one of the files into the sink."""
        into.write(self.files[media.media_id])


@dataclass
class Story:
    """The story.

    ``now``: the time at which it is created; everything happens before it. ``days`` of visitors;
    ``chance`` produces the same ones each time.
    """

    now: datetime
    embedder: Embedder
    days: int = DAYS
    chance: random.Random = field(default_factory=lambda: random.Random(7))  # noqa: S311 no secret
    answers: dict[str, str] = field(default_factory=dict)
    late: int = 0

    def __post_init__(self) -> None:
        self.clock = StoryClock(self.now)
        self.zone = ZoneInfo(settings.BUSINESS_TIME_ZONE)
        self.model = ScriptedChatModel(self._answer, name=MODEL)
        self.providers = {
            "cloud": StoryProvider("cloud"),
            "green": StoryProvider("green", text_limit=20_000),
            "console": StoryProvider("console"),
        }
        strategy = strategies.SummarizationStrategy(
            summarizer=Summarizer(chat_model=self.model), summarize_every_n_messages=SUM_UP_EVERY
        )
        memory = chat_memory.ChatMemoryService(
            godfather=frozenset({story_texts.PEOPLE["owner"].whatsapp_chat}), strategy=strategy
        )
        files = {
            each.file: story_texts.demo_file(each.file)
            for each in story_texts.MESSAGES
            if each.file
        }
        for provider in self.providers.values():
            provider.files = files
        self.media = MediaDependencies(self.providers, configured_media_storage(), MAX_BYTES)
        self.rules = IntakeRules(
            memory_enabled=True,
            chat_memory=memory,
            fetch_media=media_row_create if settings.MEDIA_RETENTION_DAYS else None,
        )
        self.dependencies = Dependencies(
            chat_model=self.model,
            embedder=self.embedder,
            providers=self.providers,
            chat_memory=memory,
            sleep=self.clock.pass_by,
            # What it costs, but no limit: the story is told in a few seconds.
            limits=UsageLimits(
                prices=settings.MODEL_PRICES, model=MODEL, time_zone=settings.BUSINESS_TIME_ZONE
            ),
        )

    @contextmanager
    def at(self, days: int, clock: str) -> Iterator[None]:
        """Run the block as if it were ``days`` days ago at ``clock`` in the business's zone."""
        day = self.now.astimezone(self.zone).date() - timedelta(days=days)
        moment = datetime.combine(day, time.fromisoformat(clock), tzinfo=self.zone)
        # Today's events never lie in the future.
        self.clock.moment = min(moment.astimezone(timezone.get_default_timezone()), self._latest())
        with self.clock.set():
            yield

    def _latest(self) -> datetime:
        """Return a past time for an event of today whose hour hasn't come, each a little later."""
        self.late += 1
        return self.now - timedelta(minutes=max(90 - 6 * self.late, 3))

    def tell(self, progress: Callable[[int, int], object]) -> None:
        """Create all conversations and the actions of staff, oldest first."""
        all_of_it: list[story_texts.Utterance | story_texts.StaffAction]
        all_of_it = [*story_texts.MESSAGES, *self._small_talk(), *story_texts.STAFF_ACTIONS]
        all_of_it.sort(key=lambda each: (-each.days, each.time))
        for number, each in enumerate(all_of_it, start=1):
            with self.at(each.days, each.time):
                if isinstance(each, story_texts.StaffAction):
                    staff_actions.perform(each)
                else:
                    self._say(each)
                    if each.person == story_texts.PEOPLE["emma"]:
                        self._sum_up(each.person)
            progress(number, len(all_of_it))

    def _sum_up(self, person: story_texts.Person) -> None:
        """Summarise the person's session, as a worker does soon after a commit."""
        chat = Chat.objects.get(whatsapp_chat=person.whatsapp_chat)
        session = chat.sessions.latest("created_at")
        self.rules.chat_memory.strategy.post_add_messages_hook(session=session)
        self.rules.chat_memory.manage(conversation_id=session.pk)

    def _small_talk(self) -> Iterator[story_texts.Utterance]:
        for days in range(1, self.days):
            for _ in range(self.chance.randint(2, 6)):
                address, name = self.chance.choice(story_texts.PASSERS_BY)
                text, answer = self.chance.choice(story_texts.SMALL_TALK)
                provider = "green" if self.chance.random() < 0.3 else "cloud"
                at = f"{self.chance.randint(7, 19):02d}:{self.chance.randint(0, 59):02d}"
                yield story_texts.Utterance(
                    story_texts.Person(address, name, provider), days, at, text, answer
                )

    def _say(self, utterance: story_texts.Utterance) -> None:
        event = self._event(utterance)
        if utterance.fails == "missed":
            event = replace(event, timestamp=event.timestamp - timedelta(hours=30))
        if utterance.answer:
            self.answers[utterance.text] = utterance.answer
        self._receive(event)
        for row in MediaFile.objects.filter(message__provider_message_id=event.provider_message_id):
            media_fetch(media_id=row.pk, dependencies=self.media)
        if utterance.fails == "waiting":
            # If workers run, they would answer it with the configured model.
            held = Turn.objects.filter(provider_message_id=event.provider_message_id)
            held.update(not_before=self.now + timedelta(days=1))
        if utterance.fails in ("missed", "waiting"):
            return
        if utterance.answer or utterance.group is None:
            self._answer_chat(utterance, event)
        if utterance.then:
            self.clock.pass_by(0 if utterance.then == "revoked" else 40)
            self._receive(self._then(utterance, event))

    def _answer_chat(self, utterance: story_texts.Utterance, event: events.InboundMessage) -> None:
        provider = self.providers[utterance.person.provider]
        if utterance.fails in FAILURES:
            provider.failure = FAILURES[utterance.fails]
        self.clock.pass_by(self.chance.uniform(0.2, 0.9))
        turn = Turn.objects.get(provider_message_id=event.provider_message_id)
        chat_answer(chat_id=turn.chat_id, dependencies=self.dependencies)
        _timings(turn, self.chance)
        if utterance.fails == "unconfirmed":
            turn.parts.update(state=PartState.UNCONFIRMED)
            turn_update_state(turn=turn)
        if not utterance.fails:
            self._statuses(utterance, turn)

    def _statuses(self, utterance: story_texts.Utterance, turn: Turn) -> None:
        ids = turn.parts.values_list("provider_message_id", flat=True)
        for provider_id in [each for each in ids if each]:
            for status in list(STEPS)[: STEPS[utterance.status]]:
                self.clock.pass_by(self.chance.uniform(0.5, 20))
                self._receive(
                    events.StatusUpdate(
                        **_about(utterance, f"{provider_id}:{status}"),
                        provider_message_id=provider_id,
                        status=status,
                        timestamp=timezone.now(),
                    )
                )

    def _event(self, utterance: story_texts.Utterance) -> events.InboundMessage:
        key = f"wamid.{uuid.UUID(int=self.chance.getrandbits(128)).hex}"
        file = utterance.file
        return events.InboundMessage(
            **_about(utterance, f"message:{key}"),
            provider_message_id=key,
            party=events.Party(phone=utterance.person.number, name=utterance.person.name),
            timestamp=timezone.now(),
            kind=utterance.kind,
            text=utterance.text,
            media=events.Media(file, mime_type=story_texts.mime_type_of(file)) if file else None,
            business_address="15550100001",
            **_group_of(utterance, name="group_name"),
        )

    def _then(self, utterance: story_texts.Utterance, event: events.InboundMessage) -> events.Event:
        """Return the event of the person's later change of the message, such as an edit."""
        what, _, text = utterance.then.partition(":")
        about: dict[str, Any] = {
            **_about(utterance, f"{what}:{event.provider_message_id}"),
            "party": event.party,
            "timestamp": timezone.now(),
            **_group_of(utterance),
        }
        if what == "edited":
            return events.MessageEdited(**about, original_id=event.provider_message_id, text=text)
        if what == "revoked":
            return events.MessageRevoked(**about, original_id=event.provider_message_id)
        return events.Reaction(**about, target_id=event.provider_message_id, emoji=text)

    def _receive(self, event: events.Event) -> None:
        events_receive(received=[event], rules=self.rules, enqueue=lambda _chat: None)

    def _answer(self, request: ChatRequest) -> str:
        """Return the answer after the time that a model takes."""
        self.clock.pass_by(self.chance.uniform(1.1, 4.8))
        first = request.messages[0].content
        if first.startswith(tuple(skill.task for skill in SKILLS.values())):
            return story_texts.SUMMARY
        question = request.messages[-1].content
        # The text sent with a picture comes after a placeholder for the picture.
        found = [text for text in self.answers if text and question.endswith(text)]
        return self.answers[max(found, key=len)] if found else "With pleasure. How can we help?"


def _group_of(utterance: story_texts.Utterance, name: str = "") -> dict[str, Any]:
    """Return the group of a message: its id and, if requested, its name."""
    if utterance.group is None:
        return {}
    return {"group_id": utterance.group.number, **({name: utterance.group.name} if name else {})}


def _about(utterance: story_texts.Utterance, key: str) -> dict[str, Any]:
    number = NUMBER_IDS[utterance.person.provider]
    raw = {"from": utterance.person.number, "text": utterance.text}
    return {
        "provider": utterance.person.provider,
        "number_id": number,
        "delivery_key": f"{number}:{key}",
        "raw": raw,
    }


def _timings(turn: Turn, chance: random.Random) -> None:
    """Store durations of the answer's steps, as with a model that is called over the network."""
    turn.refresh_from_db()
    replay = TurnReplay.of(turn)
    if "model_ms" not in replay.timings:
        return
    took = turn.finished_at - turn.created_at if turn.finished_at else timedelta(seconds=2)
    total = int(took.total_seconds() * 1_000)
    recall = chance.randint(6, 30)
    TurnReplay.objects.filter(pk=turn.pk).update(
        timings={
            **replay.timings,
            "recall_ms": recall,
            "model_ms": max(total - recall - 40, 400),
            "total_ms": max(total - 20, 450),
        }
    )


# A clock that shows the time of the story.


class StoryClock:
    """A clock whose ``moment`` is the current time for this process while it is ``set``."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def pass_by(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)

    def now(self, tz: tzinfo | None = None) -> datetime:
        """Return the moment, like datetime.now."""
        return self.moment.astimezone(tz) if tz else self.moment.replace(tzinfo=None)

    @contextmanager
    def set(self) -> Iterator[None]:
        """Replace ``datetime`` in the module of timezone.now().

        This also reaches the defaults of models, which hold the function itself.
        """
        module: Any = timezone
        real = module.datetime
        module.datetime = self
        try:
            yield
        finally:
            module.datetime = real
