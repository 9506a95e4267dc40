"""What models thought is removed from what an earlier version stored of their answers."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps

from sessions_app.models import Message, MessageEmbedding, TurnReplay
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db
SECRET = "<think>\nThe owner told me Dana owes 500.\n</think>\n\n"


def test_stored_thoughts_go_and_what_people_wrote_stays(world: World) -> None:
    world.say(CLIENT, f"{SECRET}When do you open?")
    world.say(OTHER_CLIENT, "Which tag?")
    answer = Message.objects.get(chat__whatsapp_chat=CLIENT, role="assistant")
    told = f"{SECRET}We open at 9."
    Message.objects.filter(pk=answer.pk).update(content=told, terms=["dana"])
    other = Message.objects.get(chat__whatsapp_chat=OTHER_CLIENT, role="assistant")
    quoted = "Models write `<think>` before they answer."
    Message.objects.filter(pk=other.pk).update(content=quoted)
    replay = TurnReplay.objects.get(turn__reply=answer)
    replay.prompt = [*replay.prompt, {"role": "assistant", "content": told}]
    replay.save()
    migration = import_module("sessions_app.migrations.0007_stored_thoughts")
    for _ in range(2):
        migration.clean(apps, None)
    answer.refresh_from_db()
    assert answer.content == "We open at 9."
    assert "dana" not in answer.terms
    assert not MessageEmbedding.objects.filter(message=answer).exists()
    replay.refresh_from_db()
    assert replay.prompt[-1]["content"] == "We open at 9."
    other.refresh_from_db()
    assert other.content == quoted
    question = Message.objects.get(chat__whatsapp_chat=CLIENT, role="user")
    assert question.content.startswith(SECRET)
