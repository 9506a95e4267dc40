"""A world with one row at least of everything that the admin shows."""

from __future__ import annotations

from typing import Any

from axes.models import AccessAttempt
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.urls import reverse
from django.utils import timezone
from django_q.models import OrmQ, Schedule, Task

from cards_app.models import MemoryCard
from memories_app.documents.document_store import IncomingFile
from memories_app.models import EmbeddingModel, Memory, MergeProposal, SourceDocument
from memories_app.models.documents import MemoryDocument
from memories_app.models.proposals import ProposalMemory
from memoryproject.foundation.integrations.media_storage.storage_choice import (
    configured_media_storage,
)
from memoryproject.foundation.integrations.whatsapp.events import Party
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEndpoint
from memoryproject.foundation.rest_kit.models import ApiToken
from sessions_app.merging.merge_record import record_begin, record_end
from sessions_app.models import (
    AssistantProfile,
    Broadcast,
    CannedReply,
    Chat,
    ChatAddress,
    CheckQuestion,
    ContactMerge,
    ForgetReceipt,
    ForgetRun,
    Label,
    MediaFile,
    Note,
    OpeningHours,
    Rule,
    Turn,
    TurnReplay,
)
from tests.remembering import remember
from tests.world import CLIENT, GODFATHER, World

SHA = "ab" * 32
# What would like to be more than text.
HOSTILE = (
    '<script>window.taken = true</script><img src="x" onerror="window.taken = true">'
    "\u202eright to left override \u200b\u200d\ufeff zero width {{ 7|add:7 }} %s "
    '"><b onmouseover=alert(1)>'
)


def furnish(world: World) -> None:
    """Whoever brings a page that shows rows of a table adds one here."""
    world.summarizing(2)
    for text in ("one", "two", "three"):
        world.say(CLIENT, text)
    world.sum_up(CLIENT)
    world.remember(GODFATHER, "TestCorp pays in 30 days")
    world.remember(GODFATHER, "The office opens at nine")
    chat, session = world.chat(CLIENT), world.session(CLIENT)
    now = timezone.now()
    if not ChatAddress.objects.exists():
        ChatAddress.objects.create(chat=chat, provider="cloud", address="15550100123")
    AssistantProfile.objects.get_or_create(pk=1)
    Label.objects.create(name="urgent")
    _merge(chat)
    Rule.objects.create(name="Complaints", when="message", words="refund", tells=True)
    OpeningHours.objects.update_or_create(pk=1, defaults={"hours": {"sunday": "9:00-17:00"}})
    CannedReply.objects.create(name="Hours", shortcut="hours", text="Open until five, {name}.")
    CheckQuestion.objects.create(text="Are you open?", expected="open")
    ForgetReceipt.objects.create(
        kind="memory", object_id=chat.pk, actor_kind="staff", content_hash=SHA, probe="absent"
    )
    MemoryCard.objects.create(
        session_id=session.pk,
        chat_id=chat.pk,
        session_started_at=now,
        title="t",
        algorithm_version="1",
        extracted_at=now,
        source_digest=SHA,
        last_order=1,
    )
    ForgetRun.objects.create(asked_by="role M", state="done", confirmed_at=now, finished_at=now)
    _memories()
    _file(world)
    _others(world)


def furnish_hostile(world: World) -> None:
    """The same, with such texts in all that people write or models answer."""
    party = Party(phone=CLIENT.split("@")[0], name=HOSTILE[:200])
    world.say(CLIENT, HOSTILE, party=party)
    world.say(CLIENT, HOSTILE + "x" * 20_000, party=party)
    remember(HOSTILE, tags=(HOSTILE[:60],)).revisions.create(
        number=1,
        content=f"{HOSTILE} older",
        visibility="owner",
        type="fact",
        changed_by_kind="staff",
        changed_by_name=HOSTILE[:60],
        reason="updated",
    )
    furnish(world)
    Chat.objects.update(client_name=HOSTILE[:200], staff_name=HOSTILE[:40])
    Label.objects.update(name=HOSTILE[:40])
    AssistantProfile.objects.update(persona=HOSTILE, business_name=HOSTILE[:40])
    Turn.objects.update(error=HOSTILE)
    entry = {"source": "message", "content": HOSTILE, "score": 2.0}
    for replay in TurnReplay.objects.select_related("turn"):
        around = {"role": "user", "content": HOSTILE}
        found = {**entry, "id": str(replay.turn.message_id), "before": around}
        replay.recalled = [found, {"id": "x", "similarity": -0.4}]
        replay.prompt = [{"role": "system", "content": HOSTILE}, {**around, "role": HOSTILE[:40]}]
        replay.left_out = {"passage": HOSTILE, "messages_until": "many"}
        replay.timings = {"total_ms": "soon", "recall_ms": -5}
        replay.save()
    chat, now = world.chat(CLIENT), timezone.now()
    Note.objects.create(chat=chat, author_name=HOSTILE[:40], text=HOSTILE, created_at=now)


def _merge(chat: Chat) -> None:
    """A merge that can be undone."""
    address = "15550100888@c.us"
    gone = Chat.objects.create(whatsapp_chat=address, provider="cloud")
    link = ChatAddress.objects.create(chat=gone, provider="cloud", address=address)
    record = record_begin(kept=chat, gone=gone, by="dana")
    ChatAddress.objects.filter(pk=link.pk).update(chat=chat, origin=gone.pk)
    gone.delete()
    record_end(record, chat)


def _file(world: World) -> None:
    row = MediaFile.objects.create(
        message=world.messages(CLIENT)[0], state="stored", content_type="image/png", size=8
    )
    storage = configured_media_storage()
    with IncomingFile(storage.incoming, max_bytes=8) as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        storage.put(str(row.pk), file.finished())


def _memories() -> None:
    now = timezone.now()
    first, second = Memory.objects.order_by("created_at")[:2]
    proposal = MergeProposal.objects.create(
        kind="merge", content="c", similarity=0.9, alike_key=SHA
    )
    for number, memory in enumerate((first, second), start=1):
        ProposalMemory.objects.create(proposal=proposal, memory=memory, number=number)
    SourceDocument.objects.create(
        name="prices.pdf", size=1, sha256=SHA, visibility="owner", state="ready"
    )
    MemoryDocument.objects.create(
        category="context",
        name="feature-auth-2026-01-10",
        identifier="feature-auth",
        summary="s",
        created=now,
        changed=now,
    )
    if not EmbeddingModel.objects.exists():
        EmbeddingModel.objects.create(
            model_id="hashing",
            kind="hashing",
            dimensions=8,
            calibration_midpoint=0.5,
            calibration_slope=10.0,
            state="active",
            activated_at=now,
        )


def _others(world: World) -> None:
    now = timezone.now()
    ApiToken.objects.create(name="integration", prefix="abcd", digest=SHA, scopes=["read"])
    endpoint = WebhookEndpoint.objects.create(
        name="ours", url="https://hooks.example/", secret="whsec_"
    )
    WebhookDelivery.objects.create(
        endpoint=endpoint, event_type="memory.created", occurred_at=now, due_at=now
    )
    Schedule.objects.create(name="s", func="memoryproject.foundation.audit.tasks.seal")
    OrmQ.objects.create(key="memory", payload="", lock=now)
    for success in (True, False):
        Task.objects.create(
            id=f"{success}".ljust(32, "0"),
            name=f"task {success}",
            func="memoryproject.foundation.audit.tasks.seal",
            started=now,
            stopped=now,
            success=success,
        )
    AccessAttempt.objects.create(
        username="x",
        ip_address="192.0.2.1",
        user_agent="b",
        get_data="",
        post_data="",
        http_accept="",
        path_info="",
        failures_since_start=9,
    )
    Turn.objects.filter(pk=Turn.objects.latest("pk").pk).update(state="failed")
    broadcast = Broadcast.objects.create(
        template="sale", language="en", state="paused", user_name="somebody"
    )
    broadcast.recipients.create(chat=Chat.objects.latest("created_at"))
    User.objects.create_user("somebody")
    Group.objects.create(name="Night shift")


def rows() -> dict[str, Any]:
    """Of each list of the admin, by "app_label.modelname", the key of a row in it."""
    # The lists are registered when the addresses are read.
    reverse("admin:index")
    found = {}
    for model in admin.site._registry:
        queryset = model._default_manager.all()
        if model is User:
            queryset = queryset.filter(username="somebody")
        if model is Group:
            queryset = queryset.filter(name="Night shift")
        row = queryset.first()
        assert row is not None, f"add a row of {model._meta.label} to tests/staff/furnish.py"
        found[model._meta.label_lower] = row.pk
    found["sessions_app.broadcast"] = Broadcast.objects.latest("created_at").pk
    found["sessions_app.contactmerge"] = ContactMerge.objects.latest("merged_at").pk
    found["sessions_app.mediafile.message_id"] = MediaFile.objects.latest("pk").message_id
    found["sessions_app.forgetreceipt.receipt_id"] = ForgetReceipt.objects.latest("pk").receipt_id
    return found
