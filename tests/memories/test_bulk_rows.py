"""Rows that are copied into a table are those that Django would insert."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories_app.models import Memory, MemoryStatus, Visibility
from memoryproject.foundation.bulk_rows import MIN_FOR_COPY, rows_add

pytestmark = pytest.mark.django_db

ODD = 'a\ttab, a\nline, a \\ backslash, \\N, "quotes", שלום, 👍, {braces}, NULL'


def memory(number: int, **changed: Any) -> Memory:
    values: dict[str, Any] = {
        "content": f"{ODD} {number}",
        "content_hash": f"{number:064}",
        "fact_key": f"{uuid.uuid4().hex}",
        "visibility": Visibility.CHAT,
        "status": MemoryStatus.ACTIVE,
        "chat_id": uuid.uuid4(),
        "tags": [ODD[:40], "", "NULL"],
        "terms": [],
        "likeness": ["sense"],
        "metadata": {"odd": ODD, "none": None, "list": [1, 2.5, True]},
        "confidence": 0.25,
        "expires_at": timezone.now() + timedelta(days=number),
    }
    return Memory(**{**values, **changed})


def stored(rows: list[Memory]) -> list[dict[str, Any]]:
    own = ("memory_id", "fact_key", "chat_id", "scope", "updated_at")
    found = Memory.objects.in_bulk([row.pk for row in rows])
    return [
        {
            field.attname: getattr(found[row.pk], field.attname)
            for field in Memory._meta.concrete_fields
            if field.name not in own
        }
        for row in rows
    ]


def test_copied_rows_are_the_same_as_inserted_ones() -> None:
    now = timezone.now()
    times = {"created_at": now, "said_at": now, "last_told_at": now, "expires_at": None}
    numbers = range(MIN_FOR_COPY)
    inserted = [memory(number, **times) for number in numbers]
    Memory.objects.bulk_create(inserted)
    copied = [memory(number, **times) for number in numbers]
    with CaptureQueriesContext(connection) as queries:
        rows_add(copied)
    assert [query["sql"][:4] for query in queries] == ["COPY"]
    assert stored(copied) == stored(inserted)
    assert Memory.objects.get(pk=copied[0].pk).scope == f"chat:{copied[0].chat_id}"
    # A copied row is changed like any stored one.
    copied[0].content = "another text"
    copied[0].save()
    assert Memory.objects.get(pk=copied[0].pk).content == "another text"


def test_the_time_of_a_change_is_set_unless_it_is_given() -> None:
    past = timezone.now() - timedelta(days=3)
    rows_add(set_now := [memory(number, updated_at=past) for number in range(MIN_FOR_COPY)])
    assert all(
        row.updated_at > past for row in Memory.objects.in_bulk([r.pk for r in set_now]).values()
    )
    for count in (1, MIN_FOR_COPY):
        given = [memory(number, updated_at=past) for number in range(count)]
        rows_add(given, as_given=True)
        found = Memory.objects.in_bulk([row.pk for row in given])
        assert {row.updated_at for row in found.values()} == {past}


def test_a_refused_row_leaves_none_of_the_others() -> None:
    rows = [memory(number) for number in range(MIN_FOR_COPY)]
    rows.append(memory(99, memory_id=rows[3].pk))
    with pytest.raises(IntegrityError, match="memories_app_memory_pkey"), transaction.atomic():
        rows_add(rows)
    assert not Memory.objects.exists()
