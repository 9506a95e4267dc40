"""Who sees what stays right while chats merge, numbers change hands and staff change things."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from django.utils import timezone
from hypothesis import given, strategies as st
from hypothesis.extra.django import TestCase

from memories_app.store.change import memory_set_visibility
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.models import Message, Turn
from tests.events import moved
from tests.privacy.oracle import COUNTS, Secret, may_see
from tests.privacy.probes import PROBES
from tests.privacy.test_read_paths import A_FEW, TOWNS, leaks, queries_about
from tests.privacy.town import THIRD_CLIENT, VIEWERS, MemoryPlan, SaidPlan, Town, build_town, undone
from tests.remembering import memory_expire_at
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

CLIENTS = (CLIENT, OTHER_CLIENT, THIRD_CLIENT)
NEW_NUMBERS = {
    CLIENT: "15550100124@c.us",
    OTHER_CLIENT: "15550100457@c.us",
    THIRD_CLIENT: "15550100790@c.us",
}
BSUIDS = {address: f"US.1000000000000000000{n}" for n, address in enumerate(CLIENTS)}


class History:
    """A town in which things happen, and a table of what is right that goes along with it."""

    def __init__(self, town: Town) -> None:
        self.town = town
        self.viewers = list(VIEWERS)
        # By chat: marks that it was told while it might be, or that were said there. They stay
        # in its conversation.
        self.told: dict[str, set[str]] = {}
        for secret in town.secrets:
            if secret.chat is not None and secret.state == "learned":
                self.told.setdefault(secret.chat, set()).add(secret.mark)

    def step(self, name: str, one: int, other: int) -> None:
        getattr(self, f"_{name}")(one, other)

    def check(self, number: int) -> None:
        """Every viewer asks, one after the other, about something that isn't theirs."""
        names = (
            "recall",
            "a turn",
            "/search",
            "/forget",
            "/memories",
            "a turn offline",
            "/remember",
        )
        for place, viewer in enumerate(self.viewers):
            hidden = [each for each in self.town.secrets if not may_see(viewer, each)]
            if not hidden:
                continue
            queries = queries_about(hidden[number % len(hidden)], number)
            query = queries[(number + place) % len(queries)]
            way = names[(number + place) % len(names)]
            for name in ("recall", way) if place % 2 == number % 2 else ("recall",):
                with undone():
                    shown = PROBES[name](self.town, viewer, query)
                    leaked = leaks(self.town, viewer, query, shown)
                known = self.told.get(viewer.chat, set())
                assert [text for text in leaked if not known & set(text.split())] == [], (
                    viewer.name,
                    name,
                    query,
                )

    def check_own(self) -> None:
        """What is theirs is still found."""
        for viewer in self.viewers:
            for secret in [each for each in self.town.secrets if may_see(viewer, each)][:3]:
                with undone():
                    found = PROBES["recall"](self.town, viewer, secret.text).found
                assert secret.key in found, (viewer.name, secret)

    def _change(self, place: int, **changes: object) -> None:
        self.town.secrets[place] = replace(self.town.secrets[place], **changes)  # type: ignore[arg-type]

    def _memory(self, number: int) -> tuple[int, Secret] | None:
        memories = [pair for pair in enumerate(self.town.secrets) if not pair[1].is_message]
        return memories[number % len(memories)] if memories else None

    def _visibility(self, one: int, other: int) -> None:
        found = self._memory(one)
        assert found
        place, secret = found
        visibility = ("owner", "chat", "public")[other % 3]
        if visibility == "chat" and secret.chat is None:
            visibility = "owner"
        memory_set_visibility(memory_id=secret.key, visibility=visibility, actor=SYSTEM)
        self._change(place, visibility=visibility)

    def _expire(self, one: int, _: int) -> None:
        found = self._memory(one)
        assert found
        place, secret = found
        past = timezone.now() - timedelta(hours=1)
        memory_expire_at(memory_id=secret.key, at=past, actor=SYSTEM)
        if secret.state in COUNTS:
            self._change(place, state="expired")

    def _ask(self, one: int, other: int) -> None:
        """A turn that stays: what is answered is part of the conversation from then on."""
        viewer = self.viewers[one % len(self.viewers)]
        matter = self.town.text_of(other)[0].split()
        self.town.say(viewer, " ".join(word for word in matter if word[:1] != "x"))
        self._told_now(viewer.chat)

    def _told_now(self, whatsapp_chat: str) -> None:
        """What the chat was told just now."""
        shown = str(Turn.objects.latest("id").replay.prompt)
        marks = {each.mark for each in self.town.secrets if each.mark in shown}
        self.told.setdefault(whatsapp_chat, set()).update(marks)

    def _reset(self, one: int, _: int) -> None:
        self.town.say(self.viewers[one % len(self.viewers)], "/reset")

    def _hand_over(self, one: int, _: int) -> None:
        """A client moves to a new number, and somebody else writes from the old one."""
        old = CLIENTS[one % len(CLIENTS)]
        new = NEW_NUMBERS[old]
        if any(viewer.chat == new for viewer in self.viewers):
            return
        world = self.town.world
        at = timezone.now()
        world.receive(moved(Party(phone=old[:11]), Party(phone=new[:11]), at=at))
        for place, secret in enumerate(self.town.secrets):
            if secret.chat == old:
                self._change(place, chat=new)
        self.told[new] = self.told.pop(old, set())
        (mover,) = [viewer for viewer in self.viewers if viewer.chat == old]
        self.viewers.append(replace(mover, name=f"{mover.name}, moved", chat=new, writer=new))
        world.say(old, "I am new here", timestamp=at + timedelta(seconds=1))
        self._told_now(old)
        assert world.chat(old).pk != world.chat(new).pk

    def _merge(self, one: int, _: int) -> None:
        """A client who also wrote without a phone turns out to be the same person."""
        old = CLIENTS[one % len(CLIENTS)]
        bsuid = BSUIDS[old]
        world = self.town.world
        chat = world.chat(old)
        if chat.memory_enabled is False or chat.addresses.filter(address=f"{bsuid}@bsuid").exists():
            return
        text, word = self.town.text_of(one)
        world.say(old, text, party=Party(bsuid=bsuid))
        self._told_now(old)
        said = Message.objects.filter(content=text).latest("received_at")
        self.town.secrets.append(Secret(word, text, said.pk, old))
        world.say(old, "it is me", party=Party(phone=old[:11], bsuid=bsuid))
        self._told_now(old)
        said.refresh_from_db()
        assert said.chat_id == world.chat(old).pk

    def _off(self, one: int, other: int) -> None:
        chat = self.town.chat(CLIENTS[one % len(CLIENTS)])
        chat.memory_enabled = None if other % 2 else False
        chat.save()


STEPS = st.tuples(
    st.sampled_from(
        ["visibility", "visibility", "expire", "ask", "reset", "hand_over", "merge", "off"]
    ),
    st.integers(0, 30),
    st.integers(0, 30),
)


class AnyHistory(TestCase):
    @A_FEW
    @given(**TOWNS, steps=st.lists(STEPS, min_size=4, max_size=8))
    def test_nothing_leaks_whatever_happens(
        self, memories: list[MemoryPlan], said: list[SaidPlan], steps: list[tuple[str, int, int]]
    ) -> None:
        history = History(build_town(memories, said))
        for name, one, other in steps:
            history.step(name, one, other)
        history.check(len(steps))
        history.check_own()


def test_an_answer_that_waited_goes_to_its_own_person(world: World) -> None:
    """Whoever has the number now gets nothing of it."""
    world.remember(CLIENT, "my door code is 4321")
    world.receive(message_from(CLIENT, "What is my door code?"))
    at = timezone.now()
    new = NEW_NUMBERS[CLIENT]
    world.receive(moved(Party(phone=CLIENT[:11]), Party(phone=new[:11]), at=at))
    world.receive(message_from(CLIENT, "Who is this?", timestamp=at + timedelta(seconds=1)))
    sent = len(world.provider.sent)
    world.work()

    to = {part.to.phone: part.text for part in world.provider.sent[sent:]}
    assert set(to) == {CLIENT[:11], new[:11]}
    assert "Who is this?" in to[CLIENT[:11]]
    assert "4321" not in f"{to[CLIENT[:11]]} {Turn.objects.latest('id').replay.prompt}"
