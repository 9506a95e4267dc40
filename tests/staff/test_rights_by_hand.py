"""Rights that every group of ours has together, given one without the other: each thing that is
done asks for its own."""

from __future__ import annotations

import pytest
from axes.models import AccessAttempt
from django.test import Client
from django.urls import reverse

from memoryproject.foundation.rest_kit.models import ApiToken
from sessions_app.models import ForgetRun
from tests.dashboard.staff import staff_with
from tests.staff.furnish import furnish
from tests.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def furnished(world: World) -> World:
    furnish(world)
    return world


def chosen(client: Client, address: str, action: str, key: object) -> None:
    """The list is shown, and the action done in it, if that is allowed."""
    assert client.get(address).status_code == 200
    client.post(address, {"action": action, "_selected_action": [key]})


def test_who_sees_tokens_revokes_none(furnished: World) -> None:
    client = staff_with("api.view_apitoken")
    chosen(client, "/admin/api/apitoken/", "revoke_selected", ApiToken.objects.get().pk)
    assert ApiToken.objects.get().revoked_at is None


def test_who_sees_failed_logins_lifts_no_lock(furnished: World) -> None:
    client = staff_with("dashboard.view_failedlogin")
    key = AccessAttempt.objects.get().pk
    chosen(client, "/admin/dashboard/failedlogin/", "unlock", key)
    assert AccessAttempt.objects.filter(pk=key).exists()


@pytest.mark.parametrize("missing", ["sessions_app.view_message", "memories_app.view_memory"])
def test_who_forgets_without_reading_chooses_nothing_of_a_search(
    furnished: World, missing: str
) -> None:
    rights = {"sessions_app.view_message", "memories_app.view_memory", "sessions_app.forget"}
    choose = reverse("admin:sessions_app_forgetrun_choose")
    everything = {"words": "TestCorp", "kinds": ["memory"], "how": "words", "all": "1"}
    runs = ForgetRun.objects.count()
    assert staff_with(*(rights - {missing})).post(choose, everything).status_code == 403
    assert ForgetRun.objects.count() == runs
    assert staff_with(*rights, name="noa").post(choose, everything).status_code == 302
    assert ForgetRun.objects.count() == runs + 1
