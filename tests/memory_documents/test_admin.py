"""Staff read memory documents with all their versions, and remove them."""

from __future__ import annotations

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memories_app.models import MemoryDocument, MemoryDocumentVersion
from memoryproject.foundation.audit.models import AuditEvent
from tests.dashboard.staff import page as text
from tests.memory_documents.conftest import Place

LIST = reverse("admin:memories_app_memorydocument_changelist")
HEBREW = "לבחור ב-JWT"
SCRIPT = "<script>alert(1)</script>"


def page(name: str) -> str:
    row = MemoryDocument.objects.get(name=name)
    return reverse("admin:memories_app_memorydocument_change", args=[row.pk])


def test_an_empty_list_says_how_it_fills(database: Place, admin_client: Client) -> None:
    assert "manage_memory save" in text(admin_client, LIST)


def test_the_list_shows_state_and_hides_the_archive(database: Place, admin_client: Client) -> None:
    database.save("decisions", "auth", status="superseded")
    database.save("handoffs", "task-42", progress="100%")
    shown = text(admin_client, LIST)
    assert '<span class="state bad">superseded</span>' in shown
    assert "task-42" not in shown
    archived = text(admin_client, LIST, archived="yes")
    assert "task-42" in archived
    assert "auth" not in archived.split("result_list")[1]
    assert "task-42" in text(admin_client, LIST, archived="all")
    assert "task-42" not in text(admin_client, LIST, q="auth", archived="all")
    assert "auth" in text(admin_client, LIST, q="auth", category__exact="decisions")
    assert "auth" in text(admin_client, LIST, decision="superseded").split("result_list")[1]
    assert "Nothing matches" in text(admin_client, LIST, decision="accepted")


def test_a_page_shows_content_and_versions_escaped(database: Place, admin_client: Client) -> None:
    database.save("decisions", "auth", decision="Use cookies", constraints=["a", SCRIPT])
    database.save("decisions", "auth", decision=HEBREW, constraints=[SCRIPT], extra={"x": [1]})
    shown = text(admin_client, page("auth"))
    assert f'<span class="said" dir="auto">{HEBREW}</span>' in shown
    assert SCRIPT not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "Use cookies" in shown, "the older version"
    assert "command" in shown
    assert '<pre class="data" dir="auto">' in shown
    assert 'name="_save"' not in shown


def test_a_long_history_is_shown_in_few_queries(database: Place, admin_client: Client) -> None:
    for number in range(30):
        database.save("interfaces", "auth", module=f"module-{number}-", notes="x" * 30_000)
    with CaptureQueriesContext(connection) as captured:
        shown = text(admin_client, page("auth"))
    # With the three counts of the menu's badge.
    assert len(captured) < 18
    assert "module-29-" in shown
    assert "module-5-" not in shown
    assert "characters)" in shown
    assert len(shown) < 1_500_000


def test_staff_remove_all_versions_once_asked(database: Place, admin_client: Client) -> None:
    database.save("decisions", "auth", decision="a")
    database.save("decisions", "kept", decision="a")
    row = MemoryDocument.objects.exclude(name="kept").get()
    chosen = {"action": "remove_selected", "_selected_action": [str(row.pk)]}
    asked = admin_client.post(LIST, chosen)
    assert "can't be undone" in asked.content.decode().replace("&#x27;", "'")
    assert MemoryDocument.objects.count() == 2
    done = admin_client.post(LIST, {**chosen, "confirmed": "yes"}, follow=True)
    assert "1 removed." in done.content.decode()
    assert [each.document.name for each in MemoryDocumentVersion.objects.all()] == ["kept"]
    event = AuditEvent.objects.filter(action="memory_document.remove").get()
    assert (event.actor_kind, event.actor, event.object_id) == ("staff", "admin", str(row.pk))
