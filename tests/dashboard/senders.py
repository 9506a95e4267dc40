"""Staff's replies: how the panel of a conversation is posted, and both providers' stand-ins, by
which a reply goes out over HTTP."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from memoryproject.foundation.integrations.whatsapp.cloud.client import CloudProvider
from memoryproject.foundation.integrations.whatsapp.green.client import GreenProvider
from sessions_app.models import Message, Turn
from tests.dashboard.staff import page
from tests.loopback.graph import GraphServer
from tests.loopback.green import GreenServer
from tests.world import CLIENT, World

INSTANCE = "1101000001"


@contextmanager
def sending_by_cloud(world: World) -> Iterator[GraphServer]:
    with GraphServer(access_token="token") as server:
        provider = CloudProvider(
            api_url=f"{server.url}/v24.0",
            phone_number_id=server.phone_number_id,
            access_token="token",
        )
        world.use(providers={"cloud": provider})
        yield server


@contextmanager
def sending_by_green(world: World) -> Iterator[GreenServer]:
    with GreenServer(token="token", id_instance=INSTANCE) as server:
        provider = GreenProvider(api_url=server.url, id_instance=INSTANCE, token="token")
        world.use(providers={"green": provider})
        yield server


def takeover(world: World, what: str = "") -> str:
    """The address of the panel, or of something that it posts."""
    return f"/admin/sessions_app/turn/takeover/{world.chat(CLIENT).pk}/{what}"


def conversation(client: Client, world: World, **query: Any) -> str:
    chat = world.chat(CLIENT).pk
    return page(client, f"/admin/sessions_app/chat/{chat}/conversation/", **query)


def panel(client: Client, world: World) -> str:
    shown = re.search(r'<section id="takeover".*?</section>', conversation(client, world), re.S)
    return shown[0] if shown else ""


def post(client: Client, world: World, what: str, *, work: bool = True, **form: Any) -> Any:
    """Post a form of the panel with a key of its own, and let the workers send what it made."""
    answer = client.post(takeover(world, f"{what}/"), {"key": str(uuid.uuid4()), **form})
    if work:
        world.work()
    return answer


def by_hand() -> Turn:
    return Turn.objects.get(by_hand=True)


def silent_for_a_day() -> None:
    """WhatsApp's window for replies has closed."""
    then = timezone.now() - timedelta(hours=25)
    Message.objects.update(timestamp=then)
    Turn.objects.update(asked_at=then)
