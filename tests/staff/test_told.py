"""What services refuse and workers note, told to staff in their language; the API, the log files
and the command line say it in English whatever anybody reads."""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings as configured
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone, translation
from pypdf import PdfReader

from memories_app.models import Memory, SourceDocument
from memories_app.models.proposals import MergeProposal, ProposalMemory
from memories_app.services.remember import memory_remember
from memoryproject.api.models import ApiToken
from memoryproject.api.scopes import SCOPE_HELP, SCOPES
from memoryproject.api.tokens import token_create
from memoryproject.audit.events import COMMAND_LINE
from memoryproject.audit.findings import shown_findings
from memoryproject.audit.verify import report as audit_report
from memoryproject.environment import Note
from memoryproject.hooks.kinds import EVENT_TYPES
from memoryproject.hooks.models import WebhookDelivery, WebhookEndpoint
from memoryproject.integrations.documents.base import REASONS
from memoryproject.integrations.embedders.hashing import HashingEmbedder
from memoryproject.lib.told import told
from memoryproject.lib.told_texts import TOLD_TEXTS
from sessions_app.models import (
    ExtractionWork,
    ForgetItem,
    ForgetRun,
    OutboundPart,
    SummaryWork,
    Turn,
)
from tests.api.calling import Api
from tests.world import CLIENT, World

ROOT = Path(configured.BASE_DIR)
HEBREW = re.compile("[א-ת]")
SENTENCE = re.compile(r"(?:\b[A-Za-z]?[a-z']+\b[ ,;:]+){3}")
MEMORIES = "/admin/memories_app/memory/"
RUNS = "/admin/sessions_app/forgetrun/"
KEY = UUID(int=1)
# The argument in which each error takes its text.
TEXT_OF = {
    "AddressError": 0,
    "PostError": 0,
    "_Failure": 0,
    "StillFoundError": 0,
    "DocumentError": 1,
    "EmbedderError": 0,
    "AttemptFailed": 0,
    "ChatModelError": 0,
    "SendError": 0,
    "ChainError": 0,
}
# Told on the command line alone.
NEVER_ON_A_PAGE = {
    "The chain can be gone on with: there is nothing to begin anew.",
    "7 is there: it is never replaced. Move it aside first, and keep it.",
    "7 is another model now than 7.",
}


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


def is_told(answer: Any, english: str) -> None:
    """The page has this text in Hebrew, and not as it stands here."""
    with translation.override("he"):
        hebrew = told(english)
    assert HEBREW.search(hebrew), english
    shown = text_of(answer)
    assert hebrew in shown
    assert english not in shown


# What is raised where Django isn't known.


def texts_raised() -> Iterator[tuple[str, str]]:
    """Where, and what, of every error of these kinds whose text stands there; 7 for what is put
    into it."""
    for folder in ("memoryproject", "sessions_app", "memories_app"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(call, ast.Call) and (text := _text_given(call)):
                    yield f"{path.relative_to(ROOT)}:{call.lineno}", text


def _text_given(call: ast.Call) -> str:
    name = getattr(call.func, "attr", None) or getattr(call.func, "id", "")
    place = TEXT_OF.get(name)
    if place is None or len(call.args) <= place:
        return ""
    return _text(call.args[place])


def _text(given: ast.expr) -> str:
    if isinstance(given, ast.Constant):
        return str(given.value)
    if isinstance(given, ast.JoinedStr):
        return "".join(_text(part) for part in given.values)
    if isinstance(given, ast.BinOp):
        return _text(given.left) + (_text(given.right) or ".")
    return "7" if isinstance(given, ast.FormattedValue) else ""


def test_every_error_of_the_integrations_can_be_told() -> None:
    raised = {text for _place, text in texts_raised()}
    assert len(raised) > 40
    with translation.override("he"):
        untold = {
            f"{place}: {text}"
            for place, text in texts_raised()
            if not HEBREW.search(told(text))
            and text not in NEVER_ON_A_PAGE
            # A provider's own words, and another error's.
            and text not in ("HTTP 7: 7", "7", "7.", "HTTP 401: Invalid OAuth access token")
        }
    assert untold == set()


@pytest.mark.parametrize("reason", REASONS.values())
def test_every_reason_not_to_read_a_document_can_be_told(reason: str) -> None:
    assert reason in TOLD_TEXTS


def test_in_english_everything_stays_as_it_is() -> None:
    for _place, text in texts_raised():
        assert told(text) == text


def test_what_is_put_into_a_text_stays_in_it() -> None:
    with translation.override("he"):
        shown = told("Nothing could be delivered for 5 days. Last: It answered 503.")
        assert "5" in shown
        assert "503" in shown
        assert not SENTENCE.search(shown)
        assert told("OperationalError: The disk is full.").startswith("OperationalError: ")
        assert told("Re-engagement message: more than 24 hours") == (
            "Re-engagement message: more than 24 hours"
        )
        assert told("") == ""
        assert told("write them as %20") == "write them as %20"


# What a service refuses while a page waits.


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("wrong", "english"),
    [
        ({"url": "http://1.1.1.1/"}, "needs WEBHOOKS_ALLOW_HTTP"),
        ({"url": "https://127.0.0.1/"}, "private or special"),
        ({"url": "https://user:x@1.1.1.1/"}, "user name or password"),
        ({"url": "https://1.1.1.1/ x"}, "characters that it can't"),
        ({"url": "https://1.1.1.1/#x"}, "fragment"),
        ({"name": "a\u202eb"}, "printable characters"),
        ({"chats": "nobody"}, "is no chat"),
    ],
)
def test_an_endpoint_is_refused_in_hebrew(
    reader: Client, wrong: dict[str, str], english: str
) -> None:
    given = {"name": "crm", "url": "https://1.1.1.1/", **wrong}
    page = reader.post("/admin/hooks/webhookendpoint/add/", given)
    errors = refused(page)
    assert HEBREW.search(errors)
    assert english not in errors
    assert not SENTENCE.search(errors)
    assert not WebhookEndpoint.objects.exists()


@pytest.mark.django_db
def test_a_taken_name_is_refused_in_hebrew(reader: Client) -> None:
    WebhookEndpoint.objects.create(name="crm", url="https://1.1.1.1/", secret="whsec_")
    page = reader.post(
        "/admin/hooks/webhookendpoint/add/", {"name": "crm", "url": "https://1.1.1.1/"}
    )
    assert "Endpoint" not in refused(page)
    assert HEBREW.search(refused(page))


@pytest.mark.django_db
def test_a_token_is_refused_in_hebrew(reader: Client) -> None:
    given = {"name": "n", "scopes": ["read"], "chats": "nobody"}
    page = reader.post("/admin/api/apitoken/add/", given)
    errors = refused(page)
    assert "nobody" in errors
    assert HEBREW.search(errors)
    assert "is no chat" not in errors
    assert not ApiToken.objects.exists()


def remembered(content: str, **changes: Any) -> Memory:
    values = {"visibility": "owner", "embedder": HashingEmbedder(), **changes}
    return memory_remember(content=content, **values).memory


@pytest.mark.django_db
def test_a_memory_is_refused_in_hebrew(reader: Client) -> None:
    given = {"content": "x" * 9_000, "visibility": "owner", "type": "fact"}
    page = reader.post(f"{MEMORIES}add/", given)
    errors = refused(page)
    assert "9000" in errors
    assert "8192" in errors
    assert HEBREW.search(errors)
    assert not re.search("characters|content", errors)


@pytest.mark.django_db
def test_what_an_action_left_alone_is_told_in_hebrew(reader: Client) -> None:
    memory = remembered("The office opens at nine")
    chosen = {"action": "make_chat", "_selected_action": [str(memory.pk)]}
    page = reader.post(MEMORIES, chosen, follow=True)
    said = " ".join(map(str, page.context["messages"]))
    assert HEBREW.search(said)
    assert not re.search("visibility|came from no chat", said)
    approve = {"action": "approve", "_selected_action": [str(memory.pk)]}
    said = " ".join(map(str, reader.post(MEMORIES, approve, follow=True).context["messages"]))
    assert HEBREW.search(said)
    assert "active" not in said


@pytest.mark.django_db
def test_a_text_of_a_proposal_is_refused_in_hebrew(reader: Client) -> None:
    proposal = MergeProposal.objects.create(
        kind="merge", content="c", similarity=0.9, alike_key="ab" * 32
    )
    for number, fact in enumerate(("The office opens at nine", "It opens at nine"), start=1):
        ProposalMemory.objects.create(proposal=proposal, memory=remembered(fact), number=number)
    address = f"/admin/memories_app/mergeproposal/{proposal.pk}/change/"
    posted = {"decision": "accept", "content": "x" * 9_000, "seen": ""}
    said = " ".join(map(str, reader.post(address, posted, follow=True).context["messages"]))
    assert HEBREW.search(said)
    assert not re.search("content|characters", said)


@pytest.mark.django_db
def test_that_no_vector_can_be_made_is_told_in_hebrew(
    reader: Client, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.EMBEDDER, settings.OPENAI_API_KEY = "openai", ""
    settings.OPENAI_BASE_URL = "https://api.openai.com/v1"
    given = {"content": "The office opens at nine", "visibility": "owner", "type": "fact"}
    page = reader.post(f"{MEMORIES}add/", given)
    errors = html.unescape(" ".join(map(str, page.context["errors"])))
    assert "OPENAI_API_KEY" in errors
    assert HEBREW.search(errors)
    assert not SENTENCE.search(errors.replace("python manage.py memories_reembed", ""))
    assert not HEBREW.search(caplog.text), "log files are in English"


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

STILL = f"It is still told in message {KEY}."


@pytest.mark.django_db
def test_why_a_thing_wasnt_forgotten_is_told_in_hebrew(reader: Client) -> None:
    run = ForgetRun.objects.create(
        asked_by="admin", state="done", total=1, done=1, failed=1, confirmed_at=timezone.now()
    )
    ForgetItem.objects.create(
        run=run, number=1, kind="memory", object_id=KEY, state="found", error=STILL
    )
    is_told(reader.get(f"{RUNS}{run.pk}/change/"), STILL)
    text = reader.get(f"{RUNS}{run.pk}/text/").content.decode()
    with translation.override("he"):
        assert told(STILL) in text
    assert "still told" not in text
    pdf = reader.get(f"{RUNS}{run.pk}/pdf/").content
    shown = "".join(page.extract_text() for page in PdfReader(_file(pdf)).pages)
    assert str(KEY) in shown
    assert "still told" not in shown


def _file(content: bytes) -> Any:
    return SimpleUploadedFile("f.pdf", content)


@pytest.mark.django_db
def test_why_a_document_wasnt_read_is_told_in_hebrew(reader: Client) -> None:
    detail = "It has 600; 500 are read."
    document = SourceDocument.objects.create(
        name="a.pdf", size=1, sha256="ab" * 32, visibility="owner", state="failed",
        error=f"{REASONS['too_many_pages']} {detail}", error_code="too_many_pages",
        warnings=["3 of 9 pages hold no text."],
    )  # fmt: skip
    page = reader.get(f"/admin/memories_app/sourcedocument/{document.pk}/change/")
    for english in (REASONS["too_many_pages"], detail, *document.warnings):
        is_told(page, english)


@pytest.mark.django_db
def test_how_webhooks_fare_is_told_in_hebrew(reader: Client) -> None:
    error, reason = (
        "No answer came within 10 seconds.",
        "It answered 410: it wants to be told no more.",
    )
    now = timezone.now()
    endpoint = WebhookEndpoint.objects.create(
        name="crm", url="https://1.1.1.1/", secret="whsec_", enabled=False, failing_since=now,
        last_error=error, disabled_reason=reason,
    )  # fmt: skip
    delivery = WebhookDelivery.objects.create(
        endpoint=endpoint, event_type="memory.created", occurred_at=now, due_at=now, error=error
    )
    is_told(reader.get("/admin/hooks/webhookendpoint/"), error)
    page = reader.get(f"/admin/hooks/webhookendpoint/{endpoint.pk}/change/")
    is_told(page, error)
    is_told(page, reason)
    is_told(reader.get("/admin/hooks/webhookdelivery/"), error)
    is_told(reader.get(f"/admin/hooks/webhookdelivery/{delivery.pk}/change/"), error)


def test_what_became_of_an_answer_is_told_in_hebrew(reader: Client, world: World) -> None:
    world.say(CLIENT, "Good morning")
    turn = Turn.objects.get()
    down = "the provider can't be reached (ConnectError)"
    died = "The workers that were at it died."
    Turn.objects.filter(pk=turn.pk).update(state="failed", error=down)
    OutboundPart.objects.filter(turn=turn).update(error=down)
    ExtractionWork.objects.update_or_create(turn=turn, defaults={"due": False, "error": died})
    SummaryWork.objects.update_or_create(
        session=turn.session,
        defaults={"due": True, "error": "ChatModelError: The model server could not be reached."},
    )
    replay = reader.get(f"/admin/sessions_app/turn/{turn.pk}/change/")
    is_told(replay, down)
    is_told(replay, died)
    is_told(reader.get("/admin/sessions_app/turn/"), down)
    is_told(reader.get("/admin/sessions_app/outboundpart/"), down)
    session = reader.get(f"/admin/sessions_app/chatsession/{turn.session_id}/change/")
    is_told(session, "The model server could not be reached.")


def test_what_was_learned_is_counted_in_hebrew(reader: Client, world: World) -> None:
    world.say(CLIENT, "Good morning")
    turn = Turn.objects.get()
    address = f"/admin/sessions_app/turn/{turn.pk}/change/"
    for outcome, hebrew in (("2 learned, 1 waiting", "2 נלמדו, 1 ממתינים"),
                            ("nothing worth learning", "אין מה ללמוד")):  # fmt: skip
        work = {"due": False, "error": "", "outcome": outcome}
        ExtractionWork.objects.update_or_create(turn=turn, defaults=work)
        page = text_of(reader.get(address))
        assert hebrew in page
        assert outcome not in page


@pytest.mark.django_db
def test_what_is_wrong_with_a_setting_is_told_in_hebrew(reader: Client, settings: Any) -> None:
    text = (
        "MEMORY_CONFIG: memory.longterm.top_k_results must be a whole number from 1 to 50; "
        "it is 'x'. The default is used."
    )
    settings.CONFIG_NOTES = [Note("ERROR", text)]
    settings.EXTRACT_MEMORIES, settings.CHAT_MODEL = True, "offline"
    page = reader.get("/admin/operations/settings/")
    is_told(page, text)
    is_told(
        page, "EXTRACT_MEMORIES is on, but CHAT_MODEL is offline: nothing is learned by itself."
    )
    is_told(page, "Set CHAT_MODEL=openai.")


def test_what_verifying_found_is_told_in_hebrew() -> None:
    found = audit_report.Findings()
    for number, kind in enumerate(audit_report.RUNS):
        found.add_numbers(kind, 10 * number, 10 * number + 1)
    where = "Event 5 (row 7 of audit_auditevent)"
    found.add("row_changed", where, "it was changed: its seal doesn't fit.", audit_report.RESTORE)
    report = {"findings": [vars(finding) for finding in found.finish()]}
    with translation.override("he"):
        for shown in shown_findings(report):
            assert HEBREW.search(shown["exactly"]), shown
            assert not SENTENCE.search(shown["exactly"]), shown
    english = [shown["exactly"] for shown in shown_findings(report)]
    assert any(text.startswith("Events 0 to 1: deleted from") for text in english)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("address", "english"),
    [
        ("/admin/api/apitoken/add/", SCOPE_HELP.values()),
        ("/admin/hooks/webhookendpoint/add/", EVENT_TYPES.values()),
    ],
)
def test_what_can_be_chosen_is_told_in_hebrew(
    reader: Client, address: str, english: Iterable[str]
) -> None:
    page = reader.get(address)
    for text in english:
        is_told(page, text)


# What isn't a page.


@pytest.mark.django_db
def test_the_api_refuses_in_english_whatever_is_read(world: World) -> None:
    made = token_create(name="tests", scopes=SCOPES, actor=COMMAND_LINE)
    api = Api(made.secret, Client(raise_request_exception=False))
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


@pytest.mark.django_db
def test_the_command_line_refuses_in_english(reader: Client) -> None:
    reader.get("/admin/")
    with pytest.raises(CommandError, match="is no chat: write it like"):
        call_command("create_api_token", "n", "--chat", "nobody")
