"""Replay recorded WhatsApp conversations against the running server."""

import secrets
import time
import uuid
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.conf import settings
from django.core.management.base import CommandError
from django.db.models import QuerySet
from django.utils import timezone

from memoryproject.folders import START
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.commands import MEMORY_OFF, DeclaredCommand, option
from memoryproject.foundation.integrations.loopback.providers import (
    GraphServer,
    GreenServer,
    ProviderServer,
    body_bytes,
)
from memoryproject.foundation.integrations.whatsapp.events import (
    Event,
    InboundMessage,
    MessageEdited,
    Reaction,
)
from memoryproject.foundation.integrations.whatsapp.posting import LOOPBACK
from memoryproject.staff_site.demo import story_texts
from sessions_app.models import MediaFile, Turn
from sessions_app.models.summaries import MediaState
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.stored_settings import settings_store

ANSWER_WITHIN_SECONDS = 60
# His address in the recording.
GODFATHER = "15550199999@c.us"


class Command(DeclaredCommand):
    """The providers are replaced by servers on this machine; nothing leaves it.

    The servers listen at the addresses in WHATSAPP_CLOUD_API_URL and GREEN_API_URL.
    """

    arguments = [option("--url", default=f"http://127.0.0.1:{settings.PORT}")]

    def handle(self, *args: Any, **options: Any) -> None:
        url = options["url"].rstrip("/")
        # One client for all requests: each new one would read the certificates again.
        with ExitStack() as stack:
            self._client = stack.enter_context(httpx.Client(timeout=30, trust_env=False))
            self._check_ready(url)
            self._store_settings()
            if not settings.ENABLE_MEMORY_SYSTEM:
                self.stderr.write(MEMORY_OFF)
            servers = {
                name: stack.enter_context(server) for name, server in _stand_ins(url).items()
            }
            for server in servers.values():
                for file_id, name in story_texts.FILES.items():
                    server.add_file(
                        story_texts.demo_file(name), story_texts.mime_type_of(name), file_id=file_id
                    )
            played = [
                event
                for provider, name in story_texts.CONVERSATIONS
                for event in self._replay(url, provider, name, servers[provider])
            ]
            # The workers fetch the files from the stand-ins, which end with the command.
            _wait_until_gone(
                MediaFile.objects.filter(
                    state=MediaState.PENDING, message__provider_message_id__in=_message_ids(played)
                ),
                otherwise=f"The pictures weren't fetched: are the workers running ({START})?",
            )
            for server in servers.values():
                server.wait_until_reported()
        self.stdout.write(f"\nRead the conversations: {url}/admin/sessions_app/chat/")

    def _check_ready(self, url: str) -> None:
        try:
            ready = self._client.get(f"{url}/readyz", timeout=10)
        except httpx.HTTPError as error:
            raise CommandError(f"No server at {url} ({error}). Start it: {START}") from error
        if ready.status_code != httpx.codes.OK:
            raise CommandError(f"The server isn't ready: {ready.text}")

    def _store_settings(self) -> None:
        """Store what the demo needs of a server on which WhatsApp isn't set up yet.

        The stand-ins' addresses are on this machine. The set-up replaces them.
        """
        texts: dict[str, str] = {}
        for values in story_texts.DEMO_SETTINGS:
            if all(settings.CONFIG_ORIGINS[name] == "default" for name in values):
                texts |= {name: text or secrets.token_urlsafe(24) for name, text in values.items()}
        if texts:
            settings_store(texts=texts, actor=Actor("command", "demo"))
            # By then each process of the server has looked again.
            time.sleep(2 * settings.STORED_SETTINGS_SECONDS)

    def _replay(self, url: str, provider: str, name: str, server: ProviderServer) -> list[Event]:
        """Play one conversation; return its events."""
        played: list[Event] = []
        self.stdout.write(f"\n— {story_texts.CONVERSATIONS[provider, name]} —")
        if name == "godfather" and GODFATHER not in settings.GODFATHER_PHONE:
            self.stdout.write(f"    (GODFATHER_PHONE is not {GODFATHER}: here he is a client.)")
        unique = uuid.uuid4().hex
        for recorded in story_texts.conversation(provider, name):
            payload = story_texts.restamp(recorded, timezone.now(), unique)
            payload = story_texts.with_files_at(payload, server.files, server.file_url)
            events = story_texts.events_of(provider, payload)
            played += events
            for event in events:
                self.stdout.write(_shown(event))
            seen = len(server.sent)
            self._post(f"{url}/webhooks/whatsapp/{provider}/", payload, server)
            # Turns of other chats don't count.
            _wait_until_gone(
                Turn.objects.filter(
                    state__in=[*WAITING_STATES, TurnState.SENDING],
                    message__provider_message_id__in=_message_ids(events),
                ),
                otherwise=f"No answer came: are the workers running ({START})?",
            )
            for sent in server.sent[seen:]:
                # Staff may send a template meanwhile, which is no answer.
                if "text" not in sent and "message" not in sent:
                    continue
                text = sent["text"]["body"] if provider == "cloud" else sent["message"]
                self.stdout.write(self.style.SUCCESS(f"    ← {text}"))
        return played

    def _post(self, address: str, payload: dict[str, Any], server: ProviderServer) -> None:
        body = body_bytes(payload)
        answer = self._client.post(address, content=body, headers=server.webhook_headers(body))
        if answer.status_code != httpx.codes.OK:
            raise CommandError(
                f"The webhook answered {answer.status_code}: {answer.text}. Does this command "
                "see the same settings as the server?"
            )


def _stand_ins(url: str) -> dict[str, ProviderServer]:
    """Return the stand-ins for the providers, not started yet.

    Raises CommandError for a real address, and for one that is in use.
    """
    cloud_port = _loopback_port("WHATSAPP_CLOUD_API_URL")
    green_port = _loopback_port("GREEN_API_URL")
    try:
        return {
            "cloud": GraphServer(
                access_token=settings.WHATSAPP_CLOUD_ACCESS_TOKEN,
                phone_number_id=settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID,
                app_secret=settings.WHATSAPP_CLOUD_APP_SECRET,
                webhook_url=f"{url}/webhooks/whatsapp/cloud/",
                port=cloud_port,
            ),
            "green": GreenServer(
                token=settings.GREEN_API_TOKEN,
                id_instance=settings.GREEN_API_ID_INSTANCE,
                webhook_token=settings.GREEN_API_WEBHOOK_TOKEN,
                webhook_url=f"{url}/webhooks/whatsapp/green/",
                port=green_port,
            ),
        }
    except OSError as error:
        raise CommandError(
            f"Port {cloud_port} or {green_port} is in use ({error.strerror}). Does the demo run "
            "already? They are set by WHATSAPP_CLOUD_API_URL and GREEN_API_URL."
        ) from error


def _loopback_port(setting: str) -> int:
    address = urlsplit(getattr(settings, setting))
    if address.hostname not in LOOPBACK or not address.port:
        raise CommandError(
            f"{setting} is {address.geturl()}. The demo talks to this machine only: set it to "
            "an address such as http://127.0.0.1:8791 for the server and for this command."
        )
    return address.port


def _shown(event: Event) -> str:
    if isinstance(event, MessageEdited):
        return f"    → {event.party.name} corrects a message: {event.text}"
    if isinstance(event, Reaction):
        return f"    → {event.party.name} reacts with {event.emoji}"
    if not isinstance(event, InboundMessage):
        return f"    → ({type(event).__name__})"
    kind = "" if event.kind == "text" else f"[{event.kind}] "
    return f"    → {event.party.name}: {kind}{event.text}"


def _message_ids(events: list[Event]) -> list[str]:
    return [event.provider_message_id for event in events if isinstance(event, InboundMessage)]


def _wait_until_gone(rows: QuerySet[Any], otherwise: str) -> None:
    """Wait until no such rows are left. Raises CommandError if that takes too long."""
    for _ in range(ANSWER_WITHIN_SECONDS * 10):
        if not rows.exists():
            return
        time.sleep(0.1)
    raise CommandError(otherwise)
