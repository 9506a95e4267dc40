"""A furnished world that grows: layer by layer more rows of all that the admin shows, and more in
each of the rows whose pages are looked at."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.utils import timezone

from memories_app.embedding_models.vectors import model_first
from memories_app.models import (
    EmbeddingModel,
    Memory,
    MemoryDocument,
    MemoryDocumentVersion,
    MemoryEmbedding,
    MemoryRevision,
    MergeProposal,
    ProposalMemory,
    SourceDocument,
)
from memories_app.store.retract import EXTRACTION
from sessions_app.cards.make_cards import cards_make
from sessions_app.conversations.message_store import NewMessage
from sessions_app.conversations.timeline import PAGE
from sessions_app.models import (
    Assignment,
    Bookmark,
    CannedReply,
    Chat,
    ChatAddress,
    ChatLabel,
    ChatPause,
    ChatSession,
    CheckQuestion,
    ExtractionWork,
    ForgetRun,
    Label,
    Message,
    MessageEmbedding,
    Note,
    OutboundPart,
    ReviewedMark,
    Rule,
    Snooze,
    Turn,
)
from sessions_app.models.messages import AUTHOR
from tests.remembering import remember
from tests.staff.crowd_around import WORD, forgettings_grow, integrations_grow, jobs_grow, log_grow
from tests.staff.furnish import furnish, rows
from tests.staff.people import person
from tests.world import CLIENT, GODFATHER, World


class Crowd:
    """``keys``: of each list the row whose page is looked at, as tests/staff/furnish.py has it;
    ``others``: of the same lists another row. Both grow with the world around them."""

    def __init__(self, world: World, viewers: list[User]) -> None:
        self.world = world
        self.viewers = viewers
        self.layers = 0
        model_first(embedder=world.dependencies.embedder, kind="wordllama", name="")
        furnish(world)
        self.others = rows()
        world.say(CLIENT, f"When does the {WORD} open?")
        said = Message.objects.filter(chat=world.chat(CLIENT), role="user").latest("order_num")
        self.keys = {
            **self.others,
            "sessions_app.chat": world.chat(CLIENT).pk,
            "sessions_app.chatsession": said.session_id,
            "sessions_app.message": said.pk,
            "sessions_app.turn": said.turn.pk,
            "sessions_app.forgetrun": self._run("done"),
        }
        self._more_than_a_page(said.session_id)
        # Whose messages are held from now on.
        ChatPause.objects.create(chat_id=self.others["sessions_app.chat"])
        self.others["sessions_app.forgetrun"] = self._run("running")

    def _more_than_a_page(self, session_id: uuid.UUID) -> None:
        """Of what can be leafed through: there are pages before and after, now and later."""
        lines = [
            NewMessage(role="user", content=f"line {number}", timestamp=timezone.now())
            for number in range(PAGE + PAGE // 2)
        ]
        self.world.rules.chat_memory.add_messages(conversation_id=session_id, messages=lines)

    def _run(self, state: str) -> uuid.UUID:
        return ForgetRun.objects.create(asked_by="role M", state=state).pk

    def grow(self, layers: int) -> None:
        for number in range(self.layers, self.layers + layers):
            staff = self._staff(number)
            chat = self._somebody(number, staff)
            self._same_conversation(number, staff)
            self.world.say(GODFATHER, f"Is anybody there, {number}?")
            self._same_turn(number, chat)
            self._memories(number, chat)
            self._documents(number)
            runs = [keys["sessions_app.forgetrun"] for keys in (self.keys, self.others)]
            forgettings_grow(number, self.keys, runs, chat)
            integrations_grow(number, self.keys, chat)
            jobs_grow(number)
            log_grow(number, self.keys, staff)
        self.layers += layers

    def _staff(self, number: int) -> User:
        """Somebody new, who has done something to every row that is looked at."""
        user = person(f"{WORD} {number}", "Reviewer")
        night = Group.objects.create(name=f"{WORD} {number}")
        rights = Permission.objects.order_by("pk")[number * 3 : number * 3 + 3]
        night.permissions.set(rights)
        Group.objects.get(pk=self.keys["auth.group"]).permissions.add(*rights)
        known = User.objects.get(pk=self.keys["auth.user"])
        known.user_permissions.add(*rights)
        known.groups.add(night)
        user.groups.add(night, self.keys["auth.group"])
        LogEntry.objects.bulk_create(
            LogEntry(
                user=user,
                content_type=ContentType.objects.get_for_model(model, for_concrete_model=False),
                object_id=keys[model._meta.label_lower],
                object_repr="it",
                action_flag=CHANGE,
                change_message='[{"changed": {"fields": ["Name"]}}]',
            )
            for model in admin.site._registry
            for keys in (self.keys, self.others)
        )
        return user

    def _somebody(self, number: int, staff: User) -> Chat:
        """A new chat with two sessions, in which all that staff can do was done, and answers that
        ended in every way; some days ago."""
        name = f"1555020{number:04d}@c.us"
        self.world.say(name, f"Is the {WORD} near you?")
        self.world.say(name, "/reset")
        Chat.objects.filter(whatsapp_chat=name).update(client_name=f"{WORD} {number}")
        for state in ("failed", "missed", "unconfirmed", "sending"):
            self.world.say(name, f"And the {WORD} with no. {number} that is {state}?")
            turn = Turn.objects.latest("pk")
            Turn.objects.filter(pk=turn.pk).update(state=state, error="TimeoutError: too slow")
        chat = self.world.chat(name)
        then = timezone.now() - timedelta(days=number + 1)
        Turn.objects.filter(chat=chat).update(created_at=then)
        Message.objects.filter(chat=chat).update(received_at=then)
        said = Message.objects.filter(chat=chat).latest("order_num")
        self._work_on(chat, said, number, staff)
        ChatPause.objects.create(chat=chat, paused_by=staff)
        ReviewedMark.objects.create(
            chat=chat,
            reviewed_by=staff,
            reviewed_at=then,
            began_at=said.session.created_at,
            session_key=said.session_id,
            order_num=1,
        )
        Assignment.objects.create(chat=chat, assignee=staff, assigned_at=then)
        Snooze.objects.create(chat=chat, since=then, until=then, snoozed_by=staff)
        return chat

    def _work_on(self, chat: Chat, said: Message, number: int, staff: User) -> None:
        now = timezone.now()
        for user in (staff, *self.viewers):
            Bookmark.objects.get_or_create(user=user, chat=chat, message=said)
            Bookmark.objects.get_or_create(user=user, chat=chat, message=None)
        for about in (said, None):
            Note.objects.create(
                chat=chat,
                message=about,
                author=staff,
                author_name=staff.username,
                text=f"Note {number} about the {WORD}",
                created_at=now,
            )
        label, _ = Label.objects.get_or_create(name=f"{WORD} {number}")
        words = {"name": f"{WORD} {number}", "text": "Hello {name}"}
        CannedReply.objects.get_or_create(shortcut=f"{WORD}-{number}", defaults=words)
        CheckQuestion.objects.get_or_create(
            message=said, defaults={"recalled_now": [[str(uuid.uuid4()), 0.5]]}
        )
        rule = {"when": "label", "label": label, "add_label": label}
        Rule.objects.get_or_create(name=f"{WORD} {number}", defaults=rule)
        for each in {label.pk, self.keys["sessions_app.label"]}:
            ChatLabel.objects.get_or_create(chat=chat, label_id=each)
        ChatAddress.objects.create(chat=chat, provider="green", address=f"{number}-{chat.pk}@c.us")

    def _same_conversation(self, number: int, staff: User) -> None:
        """More said in the chat that is looked at, a quote, an edit, an answer by hand, a summary,
        and sometimes a new session."""
        world = self.world
        first = Message.objects.get(pk=self.keys["sessions_app.message"])
        world.say(CLIENT, f"Another question, no. {number}, about the {WORD}?")
        reply = Message.objects.filter(chat=first.chat, role="assistant").latest("received_at")
        turn = Turn.objects.get(reply=reply)
        asked = turn.message
        assert asked is not None
        asked.metadata |= {
            "reply_to_id": first.provider_message_id,
            "reactions": {"x": "❤"},
            "sender_name": f"Name {number}",
        }
        asked.history = [{"content": "before", "until": "2026-01-01T00:00:00Z"}]
        asked.save()
        reply.metadata |= {"by_hand": True, AUTHOR: staff.pk}
        reply.save()
        Turn.objects.filter(pk=turn.pk).update(by_hand=True, context={AUTHOR: staff.pk})
        self._work_on(first.chat, asked, number, staff)
        for message in (first, asked):
            MessageEmbedding.objects.create(
                message=message, model=f"hashing {number}", vector=[1.0, 0.0]
            )
        first.deliveries.create(
            provider="cloud", delivery_key=f"again {number}", event="reaction", chat=first.chat
        )
        world.sum_up(CLIENT)
        if number % 2:
            world.say(CLIENT, "/reset")
        sessions = ChatSession.objects.filter(chat=first.chat).values_list("pk", flat=True)
        cards_make(session_ids=list(sessions))

    def _same_turn(self, number: int, chat: Chat) -> None:
        """More that was asked of the model, recalled, sent and learned for one answer."""
        for key in (self.keys["sessions_app.turn"], self.others["sessions_app.turn"]):
            turn = Turn.objects.get(pk=key)
            memory = self._remembered(
                f"No. {number} was learned from turn {turn.pk}",
                source=EXTRACTION,
                source_message_id=turn.message_id,
            )
            said = Message.objects.filter(chat=chat).earliest("order_num")
            about = {"score": 0.5, "similarity": 0.5, "in_prompt": True, "created_at": "2026-01-01"}
            turn.replay.recalled += [
                {"id": str(memory.pk), "source": "memory", "content": memory.content, **about},
                {"id": str(said.pk), "source": "message", "content": "gone", **about},
                {"id": str(self.keys["memories_app.memory"]), "source": "memory", **about},
            ]
            turn.replay.prompt += [{"role": "user", "content": f"line {number}"}]
            turn.replay.save()
            OutboundPart.objects.create(turn=turn, number=100 + number, provider="cloud")
            ExtractionWork.objects.get_or_create(turn=turn, defaults={"due": False})
            merged = Turn.objects.filter(chat=chat, state="missed").first()
            assert merged is not None
            merged.context |= {"merged_into": str(turn.turn_id)}
            merged.save()

    def _memories(self, number: int, chat: Chat) -> None:
        """New ones in every state, also of the new chat, and more about one of them."""
        known = Memory.objects.get(pk=self.keys["memories_app.memory"])
        others = [
            self._remembered(f"{known.content} {text}, {WORD} {number}", tags=(f"tag {number}",))
            for text in ("on market days", "in winter")
        ]
        told = Message.objects.filter(chat=chat).earliest("order_num")
        for proposed in (True, False):
            self._remembered(
                f"Name {number} looks at the {WORD}, {proposed}",
                proposed=proposed,
                visibility="chat",
                chat_id=chat.pk,
                source=f"source {number}",
                source_message_id=told.pk,
                category=f"category {number}",
                type=f"type {number}",
            )
        older = self._remembered(f"It said no. {number} before")
        Memory.objects.filter(pk=older.pk).update(status="superseded", superseded_by=known)
        MemoryRevision.objects.create(
            memory=known,
            number=100 + number,
            content=f"revision {number}",
            visibility="owner",
            type="fact",
            changed_by_kind="staff",
            changed_by_name=f"{WORD} {number}",
            reason="updated",
        )
        known.tellings.create(source="command", source_message_id=told.pk)
        MemoryEmbedding.objects.create(memory=known, model=f"hashing {number}", vector=[1.0, 0.0])
        self._propose(number, known, others)

    def _remembered(self, content: str, **changes: Any) -> Memory:
        return remember(content, embedder=self.world.dependencies.embedder, **changes)

    def _propose(self, number: int, known: Memory, others: list[Memory]) -> None:
        made = MergeProposal.objects.create(
            kind="merge", content=f"both {number}", similarity=0.9, alike_key=f"key {number}"
        )
        for place, memory in enumerate((known, *others), start=1):
            ProposalMemory.objects.create(proposal=made, memory=memory, number=place)
        same = self.keys["memories_app.mergeproposal"]
        ProposalMemory.objects.create(proposal_id=same, memory=others[0], number=100 + number)

    def _documents(self, number: int) -> None:
        made = SourceDocument.objects.create(
            name=f"{WORD} {number}.pdf",
            size=1,
            sha256=f"{number:064d}",
            visibility="owner",
            state=("ready", "failed", "received")[number % 3],
            source_message_id=self.keys["sessions_app.message"],
            chat_id=self.keys["sessions_app.chat"],
        )
        for document in (made.pk, self.keys["memories_app.sourcedocument"]):
            passage = self._remembered(f"Passage {number} of {document}")
            Memory.objects.filter(pk=passage.pk).update(document=document, position=100 + number)
        now = timezone.now()
        fresh = MemoryDocument.objects.create(
            category="context",
            name=f"feature-{number}",
            identifier=f"feature-{number}",
            summary="s",
            created=now,
            changed=now,
        )
        for key in (fresh.pk, self.keys["memories_app.memorydocument"]):
            MemoryDocumentVersion.objects.create(
                document_id=key,
                number=100 + number,
                body="{}",
                sha256=f"{number:064d}",
                saved_by_kind="staff",
            )
        EmbeddingModel.objects.create(
            model_id=f"hashing {number}",
            kind="hashing",
            dimensions=2,
            calibration_midpoint=0.5,
            calibration_slope=10.0,
            state="retired",
        )
