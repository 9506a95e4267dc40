"""Errors that services raise and workers store, translated for staff; the API, the log files and
the command line show them in English whatever anybody reads."""

from __future__ import annotations

import html
import json
import re
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings as configured
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone, translation
from django.utils.translation import gettext

from memories_app.models import Memory
from memoryproject.environment import Environment, Integer
from memoryproject.foundation.audit import findings as audit_report
from memoryproject.foundation.audit.findings import shown_findings
from memoryproject.foundation.errors.stored_errors import ErrorText, translate_error
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEndpoint
from sessions_app.models import (
    ExtractionWork,
    ForgetItem,
    ForgetRun,
    OutboundPart,
    SummaryWork,
    Turn,
)
from tests.api.calling import Api, make_token
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.remembering import remember
from tests.world import CLIENT, World

HEBREW = re.compile("[א-ת]")
SENTENCE = re.compile(r"(?:\b[A-Za-z]?[a-z']+\b[ ,;:]+){3}")
MEMORIES = "/admin/memories_app/memory/"
KEY = UUID(int=1)


@pytest.fixture
def reader(admin_client: Client) -> Client:
    """Staff who read Hebrew."""
    admin_client.cookies[configured.LANGUAGE_COOKIE_NAME] = "he"
    return admin_client


def text_of(answer: Any) -> str:
    """What a page says, without its tags."""
    page = re.sub(r"<(script|style).*?</\1>", " ", answer.content.decode(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def refused(answer: Any) -> str:
    """What a form says is wrong."""
    lists = re.findall(r'<ul class="errorlist.*?</ul>', answer.content.decode(), re.DOTALL)
    assert lists
    return html.unescape(re.sub(r"<[^>]*>", " ", " ".join(lists)))


def is_translated(answer: Any, english: str) -> None:
    """The page has this text in Hebrew, and not as it stands here."""
    with translation.override("he"):
        hebrew = translate_error(english) if isinstance(english, ErrorText) else gettext(english)
    assert HEBREW.search(hebrew), english
    shown = text_of(answer)
    assert hebrew in shown
    assert english not in shown


# What a service refuses while a page waits.


@pytest.mark.django_db
def test_an_endpoint_is_refused_in_hebrew(reader: Client) -> None:
    for wrong, english in (
        ({"url": "http://1.1.1.1/"}, "needs WEBHOOKS_ALLOW_HTTP"),
        ({"url": "https://127.0.0.1/"}, "private or special"),
        ({"url": "https://user:x@1.1.1.1/"}, "user name or password"),
        ({"url": "https://1.1.1.1/ x"}, "characters that it can't"),
        ({"url": "https://1.1.1.1/#x"}, "fragment"),
        ({"name": "a\u202eb"}, "printable characters"),
        ({"chats": "nobody"}, "is no chat"),
    ):
        given = {"name": "crm", "url": "https://1.1.1.1/", **wrong}
        errors = refused(reader.post("/admin/hooks/webhookendpoint/add/", given))
        assert HEBREW.search(errors)
        assert english not in errors
        assert not SENTENCE.search(errors)
    assert not WebhookEndpoint.objects.exists()


def remembered(content: str, **changes: Any) -> Memory:
    return remember(content, **{"embedder": HashingEmbedder(), **changes})


BAD_LINES = [
    b"{",
    b'["a"]',
    b'{"content": 5}',
    b'{"content": ""}',
    b'{"content": "x", "visibility": "nobody"}',
    b'{"content": "x", "whatsapp_chat": "a b"}',
    b'{"content": "x", "created_at": "yesterday"}',
    b'{"content": "x", "metadata": {"n": NaN}}',
    b'{"content": "x", "tags": {"a": 1}}',
    b"\xff",
]


@pytest.mark.django_db
def test_every_line_of_an_import_is_refused_in_hebrew(reader: Client) -> None:
    file = SimpleUploadedFile("m.ndjson", b"\n".join(BAD_LINES))
    report = reader.post(f"{MEMORIES}import/", {"file": file}).context["report"]
    assert len(report.errors) == len(BAD_LINES)
    for error in report.errors:
        assert HEBREW.search(error["detail"]), error
        assert not SENTENCE.search(error["detail"]), error


# What workers noted.


@pytest.mark.django_db
def test_why_a_thing_wasnt_forgotten_is_told_in_hebrew(reader: Client) -> None:
    still = ErrorText("still_told", what=ErrorText("kind_message"), id=KEY)
    now = timezone.now()
    run = ForgetRun.objects.create(asked_by="admin", state="done", failed=1, confirmed_at=now)
    of = {"kind": "memory", "object_id": KEY, "state": "found"}
    ForgetItem.objects.create(run=run, number=1, error=still, **of)
    for page in ("change", "receipts", "text"):
        is_translated(reader.get(f"/admin/sessions_app/forgetrun/{run.pk}/{page}/"), still)


@pytest.mark.django_db
def test_how_webhooks_fare_is_told_in_hebrew(reader: Client) -> None:
    error, reason = ErrorText("webhook_timeout", seconds=10), ErrorText("webhook_gone")
    now = timezone.now()
    endpoint = WebhookEndpoint.objects.create(
        name="crm", url="https://1.1.1.1/", secret="whsec_", enabled=False, failing_since=now,
        last_error=error, disabled_reason=reason,
    )  # fmt: skip
    delivery = WebhookDelivery.objects.create(
        endpoint=endpoint, event_type="memory.created", occurred_at=now, due_at=now, error=error
    )
    for page in ("endpoint/", f"endpoint/{endpoint.pk}/change/", "delivery/"):
        is_translated(reader.get(f"/admin/hooks/webhook{page}"), error)
    is_translated(reader.get(f"/admin/hooks/webhookdelivery/{delivery.pk}/change/"), error)
    is_translated(reader.get(f"/admin/hooks/webhookendpoint/{endpoint.pk}/change/"), reason)


def test_what_became_of_an_answer_is_told_in_hebrew(reader: Client, world: World) -> None:
    world.say(CLIENT, "Good morning")
    turn = Turn.objects.get()
    down = ErrorText("send_unreachable", kind="ConnectError")
    died = ErrorText("worker_died")
    unreachable = ErrorText("model_unreachable")
    Turn.objects.filter(pk=turn.pk).update(state="failed", error=down)
    OutboundPart.objects.filter(turn=turn).update(error=down)
    ExtractionWork.objects.update_or_create(turn=turn, defaults={"due": False, "error": died})
    SummaryWork.objects.update_or_create(
        session=turn.session,
        defaults={"due": True, "error": ErrorText("of_kind", kind="X", why=unreachable)},
    )
    for page, error in (
        *((f"turn/{turn.pk}/change/", down), (f"turn/{turn.pk}/change/", died)),
        *(("turn/", down), ("outboundpart/", down)),
        (f"chatsession/{turn.session_id}/change/", unreachable),
    ):
        is_translated(reader.get(f"/admin/sessions_app/{page}"), error)


@pytest.mark.django_db
def test_what_is_wrong_with_a_setting_is_told_in_hebrew(reader: Client, settings: Any) -> None:
    environment = Environment({}, {"RECALL_TOP_K": "x"})
    environment.read("RECALL_TOP_K", Integer("", 5, minimum=1, maximum=50))
    text = environment.notes[0].text
    assert text == (
        "MEMORY_CONFIG: memory.longterm.top_k_results must be a whole number from 1 to 50; "
        "it is 'x'. The default is used."
    )
    settings.CONFIG_NOTES = environment.notes
    settings.EXTRACT_MEMORIES, settings.CHAT_MODEL = True, "offline"
    page = reader.get("/admin/operations/settings/")
    is_translated(page, text)
    is_translated(page, ErrorText("extraction_offline"))
    is_translated(page, ErrorText("extraction_hint"))


def test_what_verifying_found_is_told_in_hebrew() -> None:
    found = audit_report.Findings()
    for number, kind in enumerate(audit_report.RUNS):
        found.add_numbers(kind, 10 * number, 10 * number + 1)
    where = ErrorText("event_row", number=5, row=7)
    found.add("row_changed", where, ErrorText("row_seal"), audit_report.RESTORE)
    report = {"findings": [vars(finding) for finding in found.finish()]}
    with translation.override("he"):
        for shown in shown_findings(report):
            assert HEBREW.search(shown["exactly"]), shown
            assert not SENTENCE.search(shown["exactly"]), shown
    english = [shown["exactly"] for shown in shown_findings(report)]
    assert any(text.startswith("Events 0 to 1: deleted from") for text in english)


# What isn't a page.


def test_the_api_refuses_in_english_whatever_is_read(world: World) -> None:
    api = Api(make_token(), Client(raise_request_exception=False))
    api.client.cookies[configured.LANGUAGE_COOKIE_NAME] = "he"
    known = remembered("The office opens at nine")
    hebrew = {"Accept-Language": "he"}
    answers = [
        api.post("memories/", {"content": "x" * 9_000}, **hebrew),
        api.post("memories/", {"content": "x", "visibility": "chat"}, **hebrew),
        api.post("memories/batch/", {"memories": [{"content": "x" * 9_000}]}, **hebrew),
        api.get(f"memories/{KEY}/", **hebrew),
        api.call("PATCH", f"memories/{known.pk}/", {"visibility": "chat"}, **hebrew),
    ]
    for answer in answers:
        assert answer.status_code in (400, 404), answer.content
        assert answer.content.decode().isascii(), answer.content.decode()
    lines = {"Content-Type": "application/x-ndjson", **hebrew}
    told_lines = api.call("POST", "memories/import/", b"\n".join(BAD_LINES), **lines)
    assert told_lines.status_code == 200
    errors = told_lines.json()["errors"]
    assert len(errors) == len(BAD_LINES)
    assert json.dumps(errors, ensure_ascii=False).isascii()
