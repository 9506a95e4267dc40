"""Whatever lines an import gets: each is stored, known already, or told with its number."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from memories_app.models import Memory
from tests.api.calling import Api
from tests.api.conftest import api
from tests.fuzz.damage import budget, damaged

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

# A fixture that stands elsewhere.
__all__ = ["api"]

RECORD: dict[str, Any] = {
    "memory_id": "0191d9a0-0000-7000-8000-000000000001",
    "content": "TestCorp pays in 30 days",
    "type": "fact",
    "category": "billing",
    "tags": ["a", "b"],
    "visibility": "owner",
    "whatsapp_chat": None,
    "source": "api",
    "source_message_id": None,
    "metadata": {"deep": [1, {"x": None}]},
    "confidence": 0.5,
    "status": "active",
    "pinned": True,
    "expires_at": "2030-01-01T00:00:00Z",
    "told_count": 1,
    "last_told_at": "2026-01-01T00:00:00Z",
    "superseded_by": None,
    "superseded_at": None,
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-02T00:00:00Z",
    "revisions": [
        {
            "number": 1,
            "content": "TestCorp pays in 20 days",
            "visibility": "owner",
            "type": "fact",
            "category": "",
            "tags": [],
            "changed_at": "2026-01-02T00:00:00Z",
            "changed_by_kind": "staff",
            "changed_by_name": "dana",
            "reason": "",
        }
    ],
    "tellings": [{"source": "api", "source_message_id": None, "told_at": "2026-01-01T00:00:00Z"}],
    "embeddings": [{"model": "m", "vector": [0.1, 0.2]}],
}


@pytest.fixture(autouse=True)
def no_limit(settings: Any) -> None:
    settings.API_RATE_BULK = 0


@budget(60)
@given(lines=st.lists(damaged([RECORD]), min_size=1, max_size=2))
@example(lines=[b"[" * 100_000])
@example(lines=[b"\xef\xbb\xbf{}"])
@example(
    lines=[json.dumps({**RECORD, "embeddings": [{"model": "m", "vector": [10**400]}]}).encode()]
)
def test_any_record_is_stored_or_told(api: Api, lines: list[bytes]) -> None:
    before = Memory.objects.count()
    raw = b"\n".join(line.replace(b"\n", b" ") for line in lines)
    answer = api.call("POST", "memories/import/", raw, Content_Type="application/x-ndjson")
    assert answer.status_code == 200, answer.content[:1_000]
    report = answer.json()
    assert Memory.objects.count() - before == report["created"]
    assert report["created"] + report["duplicates"] + len(report["errors"]) <= len(lines)
    for error in report["errors"]:
        assert 1 <= error["line"] <= len(lines)
        assert error["detail"]
