"""Data around the conversations: the profile, staff memories, receipts, tokens, webhooks, jobs."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import Schedule, Task

from memories_app.facts.validation import NewMemory
from memories_app.models import Memory, MergeProposal, ProposalKind
from memories_app.review.consolidate import memories_propose_merges
from memories_app.store import change, duplicate_lookup, remember
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.outgoing_webhooks import deliveries, models
from memoryproject.foundation.process.jobs import PatientBroker
from memoryproject.foundation.rest_kit.tokens import token_create, token_revoke
from memoryproject.staff_site.demo import story_texts
from memoryproject.staff_site.demo.story import Story
from sessions_app.cards.make_cards import cards_make
from sessions_app.forgetting.facade import ForgetDependencies, object_forget
from sessions_app.history.clear_session import sessions_expire
from sessions_app.models import AssistantProfile, CannedReply, Chat, ChatSession, Label, Message
from sessions_app.schedules import schedules_install

NOA = Actor("staff", "noa")
TRACE = """could not be reached : Traceback (most recent call last):
  File "/srv/app/sessions_app/services/embed.py", line 41, in session_embed
    vectors = embedder.embed(texts)
memoryproject.foundation.integrations.embedders.base.EmbedderError: could not be reached
"""


def create_setup(story: Story) -> None:
    """Create the profile, the staff, and the knowledge of the assistant at the month's start."""
    for name, first, last in story_texts.STAFF:
        user = User.objects.create_user(name, first_name=first, last_name=last, is_staff=True)
        user.set_unusable_password()
        user.save()
    AssistantProfile.objects.update_or_create(pk=1, defaults=story_texts.PROFILE)
    with story.at(29, "10:00"):
        for name, colour in story_texts.LABELS:
            Label.objects.create(name=name, colour=colour)
        for name, shortcut, text in story_texts.CANNED_REPLIES:
            CannedReply.objects.create(name=name, shortcut=shortcut, text=text)
    for fact in story_texts.BUSINESS_FACTS:
        with story.at(fact.days, "08:00"):
            memory = _remember(story, fact)
        if fact.corrected:
            with story.at(fact.days - 3, "18:10"):
                change.memory_patch(
                    memory_id=memory.pk,
                    changes={"content": fact.corrected},
                    actor=NOA,
                    embedder=story.embedder,
                )


def create_staff_actions(story: Story) -> None:
    """Create the actions of staff, and the open decisions."""
    for fact in story_texts.FACTS_OF_PEOPLE:
        with story.at(fact.days, "19:30"):
            _remember(story, fact)
    with story.at(1, "09:00"):
        _propose(story)
        _forget(story)
    with story.at(0, "06:00"):
        sessions_expire(now=timezone.now(), timeout=timedelta(hours=24))
        over = ChatSession.objects.filter(status="expired").values_list("pk", flat=True)
        cards_make(session_ids=list(over))
    _integrations(story)
    _jobs(story)


def _remember(story: Story, fact: story_texts.Fact) -> Memory:
    chat = Chat.objects.get(whatsapp_chat=fact.of.whatsapp_chat) if fact.of else None
    proposed = fact.confidence is not None
    source = None
    if proposed:
        messages = Message.objects.filter(chat=chat, role="user").exclude(content="")
        source = messages.latest("timestamp").pk
    new = NewMemory(
        content=fact.content,
        visibility=fact.visibility,
        chat_id=chat.pk if chat else None,
        category=fact.category,
        tags=tuple(fact.tags),
        source="extraction" if proposed else "staff",
        source_message_id=source,
        confidence=fact.confidence,
        pinned=fact.pinned,
        proposed=proposed,
    )
    return remember.memory_remember(new, embedder=story.embedder, actor=NOA).memory


def _propose(story: Story) -> None:
    """Propose merges of memories that say the same."""
    memories_propose_merges(model_id=story.embedder.model_id)
    alike = list(Memory.objects.filter(content__startswith="Delivery").order_by("created_at"))
    if len(alike) == 2 and not MergeProposal.objects.exists():
        duplicate_lookup.proposal_add(
            kind=ProposalKind.MERGE, memories=alike, content=alike[0].content, similarity=0.91
        )


def _forget(story: Story) -> None:
    """Forget a fact, a message and a whole person, each with its receipt."""
    dependencies = ForgetDependencies(chat_memory=story.rules.chat_memory)
    breads = Message.objects.filter(
        chat__whatsapp_chat=story_texts.PEOPLE["tom"].whatsapp_chat, content__contains="bread"
    )
    for kind, rows in (
        ("memory", Memory.objects.filter(content__startswith="The oven")),
        ("message", breads),
        ("chat", Chat.objects.filter(whatsapp_chat=story_texts.PEOPLE["iris"].whatsapp_chat)),
    ):
        if row := rows.first():
            object_forget(kind=kind, object_id=row.pk, dependencies=dependencies, actor=NOA)


def _integrations(story: Story) -> None:
    with story.at(20, "12:00"):
        token_create(name="Till", scopes=["read", "write"], actor=NOA)
        old = token_create(name="Old website", scopes=["read"], actor=NOA)
        token_revoke(token_id=old.token.pk, actor=NOA)
        token_create(
            name="Newsletter", scopes=["read"], expires_at=story.now + timedelta(days=60), actor=NOA
        )
    shop = models.WebhookEndpoint.objects.create(
        name="Order desk",
        url="https://orders.cafe-shaked.example/hooks",
        event_types=["turn.failed", "memory.created"],
        secret="whsec_" + "demo" * 8,
        last_success_at=story.now - timedelta(minutes=12),
        created_by="noa",
    )
    for hours, state, status in ((30, "delivered", 200), (6, "delivered", 200), (1, "failed", 500)):
        delivery = deliveries.delivery_test(endpoint_id=shop.pk)
        at = story.now - timedelta(hours=hours)
        models.WebhookDelivery.objects.filter(pk=delivery.pk).update(
            state=models.DeliveryState(state),
            occurred_at=at,
            due_at=at,
            attempts=1 if status == 200 else 8,
            last_status=status,
            last_attempt_at=at,
            finished_at=at,
            error="" if status == 200 else ErrorText("webhook_status", status=500),
        )


def _jobs(story: Story) -> None:
    """Create schedules that ran and a failed job."""
    schedules_install()
    for number, schedule in enumerate(Schedule.objects.order_by("name")):
        at = story.now - timedelta(seconds=40)
        job = Task.objects.create(
            id=f"{number:032x}", name=schedule.name, func=schedule.func, group=schedule.name,
            args=(), kwargs={}, result=0, started=at, stopped=at, success=True, attempt_count=1,
        )  # fmt: skip
        later = story.now + timedelta(minutes=schedule.minutes or 15)
        Schedule.objects.filter(pk=schedule.pk).update(task=job.id, next_run=later)
    at = story.now - timedelta(hours=3)
    Task.objects.create(
        id=f"{99:032x}", name="vectors", func="sessions_app.tasks.embed_session", args=("",),
        kwargs={}, result=TRACE, started=at, stopped=at, success=False, attempt_count=3,
    )  # fmt: skip


# A queue that takes jobs and keeps none.


class NoQueue(PatientBroker):
    """A broker of django-q2 for programs whose jobs nobody is to do."""

    def enqueue(self, task: str) -> str:
        return ""


@contextmanager
def without_jobs() -> Iterator[None]:
    """While the block runs, this process puts no job into a queue. Sweeps find the work later."""
    chosen = Conf.BROKER_CLASS
    Conf.BROKER_CLASS = f"{NoQueue.__module__}.{NoQueue.__qualname__}"
    try:
        yield
    finally:
        Conf.BROKER_CLASS = chosen
