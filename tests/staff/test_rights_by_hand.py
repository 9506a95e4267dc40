"""Rights that every group of ours has together, given one without the other: each page asks for
all of its own, and a change asks for its own beside them."""

from __future__ import annotations

from typing import Any

import pytest
from axes.models import AccessAttempt
from django.test import Client
from django.urls import reverse

from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEndpoint
from memoryproject.foundation.rest_kit.models import ApiToken
from sessions_app.models import ForgetRun
from tests.dashboard.staff import staff_with
from tests.staff.expected import PAGES
from tests.staff.furnish import furnish, rows
from tests.staff.roles import Try, address_of, is_refused, made
from tests.world import new_world

pytestmark = pytest.mark.django_db

CHAT, MESSAGE = "sessions_app.view_chat", "sessions_app.view_message"
TURN, MEMORY = "sessions_app.view_turn", "memories_app.view_memory"
REVIEW, RERUN = "sessions_app.review_chat", "sessions_app.rerun_turn"
ADD, CHANGE = "memories_app.add_memory", "memories_app.change_memory"
DECIDE, EXPORT = "memories_app.decide_mergeproposal", "memories_app.export_memory"
FORGET = "sessions_app.forget"
MERGES = (CHAT, MESSAGE, MEMORY, "sessions_app.merge_chat")
TAKES_OVER = (CHAT, MESSAGE, "sessions_app.takeover_chat")
OPERATES = ("dashboard.operate_server",)
# Of each page, by the name of its address: all rights that it takes.
NEEDS: dict[str, tuple[str, ...]] = {
    "contacts": (CHAT,),
    "contact": (CHAT,),
    "contact_edit": (CHAT, REVIEW),
    "contact_export": (CHAT, MESSAGE, MEMORY, EXPORT),
    **dict.fromkeys(
        ["contact_merge_find", "contact_merge", "contact_merge_undo", "contact_split"], MERGES
    ),
    **dict.fromkeys(("broadcasts", "broadcast"), TAKES_OVER),
    "moving": ("sessions_app.change_chat", ADD),
    "sessions_app_chat_conversation": (CHAT, MESSAGE),
    "sessions_app_chat_viewers": (CHAT, MESSAGE),
    "sessions_app_chat_filters": (CHAT,),
    "sessions_app_message_media": (MESSAGE,),
    **{f"sessions_app_chat_{each}": (CHAT, REVIEW) for each in ("review", "review_many", "note")},
    "sessions_app_chat_takeover": TAKES_OVER,
    **{
        f"sessions_app_chat_takeover_{each}": TAKES_OVER
        for each in ("pause", "resume", "reply", "draft", "template", "canned")
    },
    "sessions_app_turn_rerun": (TURN, RERUN),
    "sessions_app_turn_recall": (TURN,),
    "sessions_app_turn_trials": (TURN, RERUN),
    "sessions_app_turn_near": (TURN, MEMORY),
    "sessions_app_turn_failures": (TURN,),
    "sessions_app_turn_failures_act": (TURN, REVIEW),
    "sessions_app_turn_rate": (TURN, REVIEW),
    "sessions_app_turn_resolve": (TURN, REVIEW),
    "sessions_app_turn_change_trial": (CHAT, MESSAGE, TURN, ADD),
    "sessions_app_turn_teach": (TURN, ADD),
    "sessions_app_turn_correct": (TURN, CHANGE),
    "sessions_app_turn_unknown": (TURN, MESSAGE),
    "sessions_app_turn_unknown_teach": (TURN, MESSAGE, ADD),
    "sessions_app_turn_unknown_ignore": (TURN, MESSAGE, REVIEW),
    "sessions_app_turn_outcomes": ("sessions_app.view_chatsession", MESSAGE),
    "sessions_app_turn_outcomes_decide": ("sessions_app.view_chatsession", MESSAGE, REVIEW),
    "sessions_app_assistantprofile_preview": ("sessions_app.change_assistantprofile",),
    "memories_app_memory_export": (MEMORY, EXPORT),
    "memories_app_memory_import": (ADD,),
    "memories_app_memory_table": (MEMORY, ADD),
    "memories_app_memory_table_example": (MEMORY, ADD),
    "memories_app_memory_rows": (CHANGE,),
    "memories_app_memory_waiting": (MEMORY,),
    "memories_app_memory_promises": (MEMORY,),
    "memories_app_memory_promises_mark": (CHANGE,),
    **{
        f"memories_app_memory_{each}": (MEMORY, DECIDE)
        for each in ("answer", "answer_many", "decide")
    },
    "memories_app_mergeproposal_decide": (DECIDE,),
    **{
        f"sessions_app_forgetrun_{each}": (FORGET, MESSAGE, MEMORY) for each in ("search", "choose")
    },
    **dict.fromkeys(
        (f"sessions_app_forgetrun_{each}" for each in ("person", "progress", "receipts", "text")),
        (FORGET,),
    ),
    "sessions_app_forgetrun_confirm": (FORGET,),
    "sessions_app_forgetreceipt_text": ("sessions_app.view_forgetreceipt",),
    "sessions_app_forgetrun_export": (MESSAGE, MEMORY, EXPORT),
    **{
        f"operations{each}": OPERATES
        for each in ("", "_settings", "_queue", "_schedules", "_turns", "_provider", "_job")
    },
    "operations_schedule_run": OPERATES,
    "operations_turn_take_up": (*OPERATES, RERUN),
}


@pytest.fixture(scope="module")
def furnished(module_rows: None) -> None:
    furnish(new_world())


@pytest.mark.parametrize("name", NEEDS)
def test_a_page_takes_each_of_its_rights(furnished: None, name: str) -> None:
    page, rights = PAGES[name], NEEDS[name]
    address = address_of(name, page, rows())
    tries = [Try("GET", name, address, "")] if page.get is not None else []
    tries += [Try("POST", name, address, "", dict(page.data))] if page.post is not None else []
    for one in tries:
        client = staff_with(*rights, name=f"{one.method} with all")
        client.raise_request_exception = False
        answer, _ = made(client, one)
        assert not is_refused(answer, name), (one.method, "refused to who has all")
        for number, missing in enumerate(rights):
            others = [right for right in rights if right != missing]
            answer, written = made(staff_with(*others, name=f"{one.method} {number}"), one)
            assert is_refused(answer, name), (one.method, missing)
            assert not written, (one.method, missing)


def chosen(client: Client, address: str, action: str, key: object) -> None:
    """The list is shown, and the action done in it, if that is allowed."""
    assert client.get(address).status_code == 200
    client.post(address, {"action": action, "_selected_action": [key]})


def test_who_only_sees_a_list_does_nothing_in_it(furnished: None) -> None:
    tokens = staff_with("api.view_apitoken")
    chosen(tokens, "/admin/api/apitoken/", "revoke_selected", ApiToken.objects.get().pk)
    assert ApiToken.objects.get().revoked_at is None
    logins, key = staff_with("dashboard.view_failedlogin", name="noa"), AccessAttempt.objects.get()
    chosen(logins, "/admin/dashboard/failedlogin/", "unlock", key.pk)
    assert AccessAttempt.objects.filter(pk=key.pk).exists()
    hooks = staff_with("hooks.view_webhookendpoint", "hooks.view_webhookdelivery", name="ron")
    endpoint, sent = WebhookEndpoint.objects.get(), WebhookDelivery.objects.get()
    WebhookDelivery.objects.update(state="delivered")
    for action in ("give_new_secret", "send_test"):
        chosen(hooks, "/admin/hooks/webhookendpoint/", action, endpoint.pk)
    chosen(hooks, "/admin/hooks/webhookdelivery/", "send_again", sent.pk)
    assert WebhookEndpoint.objects.get().secret == endpoint.secret
    assert [each.state for each in WebhookDelivery.objects.all()] == ["delivered"]


@pytest.mark.parametrize("missing", ["sessions_app.view_message", "memories_app.view_memory"])
def test_who_forgets_without_reading_chooses_nothing_found(furnished: None, missing: str) -> None:
    rights = {"sessions_app.view_message", "memories_app.view_memory", "sessions_app.forget"}
    choose = reverse("admin:sessions_app_forgetrun_choose")
    everything: dict[str, Any] = {"words": "TestCorp", "kinds": ["memory"], "how": "words"}
    runs = ForgetRun.objects.count()
    some = staff_with(*(rights - {missing}))
    assert some.post(choose, {**everything, "all": "1"}).status_code == 403
    assert ForgetRun.objects.count() == runs
    all_of_them = staff_with(*rights, name="noa")
    assert all_of_them.post(choose, {**everything, "all": "1"}).status_code == 302
    assert ForgetRun.objects.count() == runs + 1
