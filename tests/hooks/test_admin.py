"""Staff make, change and watch endpoints, and see and repeat deliveries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories_app.facts.validation import NewMemory
from memories_app.store.remember import memories_remember
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.network.addresses import Posted
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEndpoint
from sessions_app.models import Chat
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.doubles.recording_poster import RecordingPoster
from tests.forms import save
from tests.hooks.receiver import Receiver, dependencies, send_all

pytestmark = pytest.mark.django_db
ENDPOINTS = "/admin/hooks/webhookendpoint/"
DELIVERIES = "/admin/hooks/webhookdelivery/"
# An address that stands for itself, so that no name is asked for.
PUBLIC = "https://1.1.1.1/hooks"


def form(**changes: Any) -> dict[str, Any]:
    return {"name": "crm", "url": PUBLIC, **changes}


def remember(count: int = 1) -> None:
    wanted = [NewMemory(content=f"{timezone.now()} {n}", visibility="owner") for n in range(count)]
    memories_remember(memories=wanted, embedder=HashingEmbedder(), actor=SYSTEM)


def test_an_endpoint_is_made_its_secret_shown_once(admin_client: Client, admin_user: Any) -> None:
    given = form(event_types=["memory.created", "card.made"], chats="15550100123@c.us")
    page = admin_client.post(f"{ENDPOINTS}add/", given)
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    endpoint = WebhookEndpoint.objects.get()
    assert endpoint.secret in page.content.decode()
    assert endpoint.event_types == ["memory.created", "card.made"]
    assert endpoint.chat_ids == [Chat.objects.get(whatsapp_chat="15550100123@c.us").pk]
    assert endpoint.created_by == admin_user.username
    shown = admin_client.get(f"{ENDPOINTS}{endpoint.pk}/change/").content.decode()
    assert endpoint.secret not in shown
    assert "15550100123@c.us" in shown
    event = AuditEvent.objects.get(action="webhook.create")
    assert event.actor == admin_user.username
    assert "1.1.1.1" not in str(vars(event))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": ""}, "required"),
        ({"name": "a\u0000b"}, "Null characters"),
        ({"url": ""}, "required"),
        ({"url": "http://1.1.1.1/"}, "WEBHOOKS_ALLOW_HTTP"),
        ({"url": "https://127.0.0.1/"}, "private or special"),
        ({"url": "https://[::ffff:10.0.0.1]/"}, "private or special"),
        ({"url": "https://user:x@1.1.1.1/"}, "user name or password"),
        ({"url": "https://nobody.invalid/"}, "resolved"),
        ({"event_types": ["memory.read"]}, "memory.read"),
        ({"chats": "nobody"}, "is no chat"),
    ],
)
def test_nonsense_is_told_in_the_form(
    admin_client: Client, wrong: dict[str, Any], said: str
) -> None:
    page = admin_client.post(f"{ENDPOINTS}add/", form(**wrong))
    assert page.status_code == 200
    assert said in page.content.decode()
    assert not WebhookEndpoint.objects.exists()
    assert not Chat.objects.exists()


def test_an_endpoint_is_changed(admin_client: Client, endpoint: WebhookEndpoint) -> None:
    """Its URL leads to this machine and stays: only a new one is checked when it is saved."""
    address = f"{ENDPOINTS}{endpoint.pk}/change/"
    body = form(name="erp", url="https://1.1.1.1/new", event_types=["turn.failed"])
    assert save(admin_client, address, body).status_code == 302
    endpoint.refresh_from_db()
    assert (endpoint.name, endpoint.enabled) == ("erp", False), "a box that isn't ticked"
    assert endpoint.event_types == ["turn.failed"]
    WebhookEndpoint.objects.update(disabled_reason="It answered 410.", failing_since=timezone.now())
    assert save(admin_client, address, {**body, "enabled": "on"}).status_code == 302
    endpoint.refresh_from_db()
    assert (endpoint.enabled, endpoint.disabled_reason, endpoint.failing_since) == (True, "", None)
    assert AuditEvent.objects.filter(action="webhook.change").count() == 2


def test_a_bound_endpoint_stays_bound_when_something_else_is_changed(admin_client: Client) -> None:
    admin_client.post(f"{ENDPOINTS}add/", form(chats="15550100123@c.us"))
    endpoint = WebhookEndpoint.objects.get()
    address = f"{ENDPOINTS}{endpoint.pk}/change/"
    shown = admin_client.get(address).context["adminform"].form["chats"].value()
    save(admin_client, address, form(name="erp", chats=shown, enabled="on"))
    changed = WebhookEndpoint.objects.get()
    assert (changed.name, changed.chat_ids) == ("erp", endpoint.chat_ids)
    Chat.objects.all().delete()
    shown = admin_client.get(address).context["adminform"].form["chats"].value()
    save(admin_client, address, form(name="hr", chats=shown, enabled="on"))
    changed = WebhookEndpoint.objects.get()
    assert (changed.name, changed.chat_ids) == ("hr", endpoint.chat_ids), (
        "whose chat was erased is told of no other"
    )


def test_a_new_secret_is_shown_once(admin_client: Client, endpoint: WebhookEndpoint) -> None:
    page = admin_client.post(
        ENDPOINTS, {"action": "give_new_secret", "_selected_action": [endpoint.pk]}
    )
    after = WebhookEndpoint.objects.get()
    assert after.secret != endpoint.secret
    assert after.secret in page.content.decode()
    assert endpoint.secret not in page.content.decode()
    assert after.old_secret == endpoint.secret
    assert after.old_secret_until is not None
    assert AuditEvent.objects.filter(action="webhook.rotate").count() == 1


def test_a_test_is_sent_and_seen_in_the_log(
    admin_client: Client, endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    admin_client.post(ENDPOINTS, {"action": "send_test", "_selected_action": [endpoint.pk]})
    send_all()
    assert [event["type"] for event in receiver.events(endpoint.secret)] == ["webhook.test"]
    page = admin_client.get(DELIVERIES).content.decode()
    assert "webhook.test" in page
    assert "delivered" in page


def test_an_endpoint_goes_with_its_log(admin_client: Client, endpoint: WebhookEndpoint) -> None:
    remember(3)
    page = admin_client.post(f"{ENDPOINTS}{endpoint.pk}/delete/", {"post": "yes"})
    assert page.status_code == 302
    assert not WebhookEndpoint.objects.exists()
    assert not WebhookDelivery.objects.exists()
    assert AuditEvent.objects.filter(action="webhook.remove").count() == 1


def test_a_failed_delivery_is_repeated(admin_client: Client, endpoint: WebhookEndpoint) -> None:
    remember()
    poster = RecordingPoster(Posted(410))
    send_all(dependencies(poster))
    page = admin_client.get(f"{DELIVERIES}?state__exact=failed").content.decode()
    assert "It answered 410." in page
    row = WebhookDelivery.objects.get()
    again = {"action": "send_again", "_selected_action": [row.pk]}
    # From the list of the failed ones, which it isn't in any more then.
    answer = admin_client.post(f"{DELIVERIES}?state__exact=failed", again, follow=True)
    assert "waits until its endpoint is enabled" in answer.content.decode()
    body = form(url=endpoint.url, enabled="on")
    assert save(admin_client, f"{ENDPOINTS}{endpoint.pk}/change/", body).status_code == 302
    assert send_all(dependencies(poster)) == 1
    ids = {post.headers["webhook-id"] for post in poster.posts}
    assert ids == {row.message_id}
    found = admin_client.get(f"{DELIVERIES}?q={row.message_id}").content.decode()
    assert "memory.created" in found
    nothing = admin_client.get(f"{DELIVERIES}?q=nonsense").content.decode()
    assert "0 deliveries" in nothing
    shown = admin_client.get(f"{DELIVERIES}{row.pk}/change/").content.decode()
    assert row.data["memory_id"] in shown


def test_the_first_page_names_who_fails(admin_client: Client, endpoint: WebhookEndpoint) -> None:
    assert "not delivered to" not in admin_client.get("/admin/").content.decode()
    long_ago = timezone.now() - timedelta(minutes=10)
    WebhookEndpoint.objects.update(failing_since=long_ago)
    assert "not delivered to: crm" in admin_client.get("/admin/").content.decode()
    assert "failing" in admin_client.get(f"{ENDPOINTS}?state=failing").content.decode()
    WebhookEndpoint.objects.update(
        failing_since=None, enabled=False, disabled_reason="It answered 410."
    )
    assert "not delivered to: crm" in admin_client.get("/admin/").content.decode()
    assert "crm" in admin_client.get(f"{ENDPOINTS}?state=disabled").content.decode()
    assert "0 endpoints" in admin_client.get(f"{ENDPOINTS}?state=works").content.decode()
    WebhookEndpoint.objects.update(disabled_reason="")
    assert "not delivered to" not in admin_client.get("/admin/").content.decode(), "on purpose"
