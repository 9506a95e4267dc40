"""Receipts as text and as pages to print, as somebody hands them to the person who asked."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any
from uuid import UUID

import pytest
from django.test import Client, override_settings
from django.utils import translation
from django.utils.html import escape

from sessions_app.backup.restore_checks import all_tables
from sessions_app.forgetting.receipt_pages import (
    WORDS,
    as_text,
    receipt_document,
    run_document,
    swept_words,
    table_words,
    times_of,
)
from sessions_app.models import ForgetItem, ForgetReceipt, ForgetRun

pytestmark = pytest.mark.django_db

KEY = UUID("3f2b8c1e-0000-4000-8000-000000000001")
MOMENT = datetime(2026, 3, 1, 22, 30, 5, tzinfo=timezone.utc)


def a_receipt(**changes: Any) -> ForgetReceipt:
    values = {
        "kind": "memory",
        "object_id": KEY,
        "forgotten_at": MOMENT,
        "actor_kind": "staff",
        "actor": "dana",
        "content_hash": "ab" * 32,
        "swept": {"sessions_app_turn": 3, "memories_app_memory": 1},
        "probe": "absent",
    }
    return ForgetReceipt.objects.create(**{**values, **changes})


def page_of(row: ForgetReceipt | ForgetRun, client: Client, language: str = "en") -> str:
    """The page's content without its tags."""
    end = "change" if isinstance(row, ForgetReceipt) else "receipts"
    address = f"/admin/sessions_app/{row._meta.model_name}/{row.pk}/{end}/"
    page = client.get(address, headers={"Accept-Language": language}).content.decode()
    return re.sub(r"<[^>]+>", "", page.partition('<main id="content"')[2].partition("</main>")[0])


def test_the_text_says_all_of_it(settings: Any) -> None:
    settings.BUSINESS_TIME_ZONE = "Asia/Jerusalem"
    receipt = a_receipt()
    text = as_text(receipt_document(receipt))
    for line in (
        f"Receipt: {receipt.receipt_id}",
        "What was erased: Memory",
        f"Its id: {KEY}",
        "When: 2026-03-02 00:30:05 (Asia/Jerusalem), 2026-03-01 22:30:05 (UTC)",
        "By whom: staff: dana",
        "Check: Searched afterwards, not found.",
        f"Keyed hash of the content: {'ab' * 32}",
        "Memories: 1",
        "Replays of answers, deleted or cleaned: 3",
    ):
        assert line in text.split("\r\n")
    assert text.index("Memories: 1") < text.index("Replays")


@pytest.mark.parametrize("language", ["en", "he"])
def test_the_page_says_all_of_it(admin_client: Client, settings: Any, language: str) -> None:
    settings.BUSINESS_TIME_ZONE = "Asia/Jerusalem"
    looks = {"recall": {"queries": 3, "rows": 7, "looked_at": ["an_index"]}}
    left = [{"what": "message", "id": str(KEY)}]
    receipt = a_receipt(actor="דנה <b>", probe="found", left=left, probe_details=looks)
    shown = page_of(receipt, admin_client, language)
    with translation.override(language):
        document = receipt_document(receipt)
    for part in document.parts:
        cells = [cell for row in (part.columns, *part.rows) for cell in row]
        for text in (part.title, *(each for fact in part.facts for each in fact), *cells):
            assert escape(text) in shown
    assert len(document.parts) == 4
    for text in (document.title, *document.notes):
        assert escape(text) in shown
    for text in (str(receipt.receipt_id), str(KEY), "ab" * 32, "דנה", "2026-03-02 00:30:05"):
        assert text in shown
    assert ("Searched afterwards" in shown) is (language == "en")


def test_one_document_for_a_run_with_each_receipt_and_each_trouble(admin_client: Client) -> None:
    run = ForgetRun.objects.create(
        asked_by="dana", state="done", total=3, done=3, failed=1, confirmed_at=MOMENT
    )
    receipts = [a_receipt(), a_receipt(swept={"memories_app_memory": 1, "django_q_task": 2})]
    for number, receipt in enumerate(receipts, start=1):
        ForgetItem.objects.create(
            run=run, number=number, kind="memory", object_id=receipt.receipt_id,
            state="forgotten", receipt=receipt,
        )  # fmt: skip
    error = f"It is still told in message {KEY}."
    ForgetItem.objects.create(
        run=run, number=3, kind="session", object_id=KEY, state="found", error=error
    )
    text = as_text(run_document(run))
    assert "Memories: 2" in text
    assert "Things with a receipt: 2" in text
    assert "3. Session: still found: nothing was changed" in text
    assert f"Why: {error}" in text
    shown = page_of(run, admin_client)
    assert f"Why{error}" in shown
    for receipt in receipts:
        assert str(receipt.receipt_id) in text
        assert str(receipt.receipt_id) in shown


def test_every_table_has_a_name_for_people() -> None:
    # No backup has sessions and jobs, but both are swept. Of Django's own record of migrations
    # nothing is.
    tables = {table.name for table in all_tables()}
    tables |= {"django_session", "django_q_ormq", "django_q_task"}
    tables -= {"django_migrations"}
    assert {table for table in WORDS if " " not in table} <= tables
    assert not [table for table in tables if table_words(table) == table]
    assert swept_words({"sessions_app_turn": 0, "unheard_of": 2}) == [("unheard_of", 2)]


@override_settings(BUSINESS_TIME_ZONE="UTC")
def test_a_business_in_utc_reads_each_time_once() -> None:
    assert times_of(MOMENT) == "2026-03-01 22:30:05 (UTC)"
