"""Staff send failed answers again from the admin's list of turns."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from memoryproject.foundation.integrations.whatsapp.base import SendError
from sessions_app.models import Turn
from tests.world import CLIENT, OTHER_CLIENT, World


@pytest.mark.parametrize("address_ends", ["", "?state__exact=failed"])
def test_each_failed_answer_is_sent_again_and_others_are_left_alone(
    world: World, admin_client: Client, address_ends: str
) -> None:
    world.provider.fail_next(SendError("window closed", permanent=True))
    world.say(CLIENT, "Lost")
    world.say(OTHER_CLIENT, "Fine")
    chosen = Turn.objects.filter(state="failed") if address_ends else Turn.objects.all()
    answer = admin_client.post(
        reverse("admin:sessions_app_turn_changelist") + address_ends,
        {"action": "send_again", "_selected_action": list(chosen.values_list("pk", flat=True))},
        follow=True,
    )
    told = [str(message) for message in answer.context["messages"]]
    left = "1 answer was skipped: it needs no retry, or can't be run any more."
    assert told == ["1 answer is retried.", *([] if address_ends else [left])]
    world.work()
    assert [part.text for part in world.provider.sent] == ["answer to: Fine", "answer to: Lost"]
    assert set(Turn.objects.values_list("state", flat=True)) == {"sent"}
