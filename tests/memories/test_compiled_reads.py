"""A queryset that is compiled once reads what the queryset itself would read."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.models import TextField, UUIDField

from memories_app.models import Memory
from memoryproject.foundation.compiled_reads import Given, compiled

FACTS = ["Tea costs 100% of 5", "TestCorp pays in 30 days", "The shop opens at 9"]


@pytest.mark.django_db
def test_it_reads_what_the_queryset_reads_with_the_values_of_each_call() -> None:
    memories = [
        Memory.objects.create(content=fact, visibility="owner", fact_key=fact) for fact in FACTS
    ]
    ids = Given("ids", UUIDField(), "(SELECT unnest(%s::uuid[]))")
    read = compiled(
        Memory.objects.filter(pk__in=ids, content__contains=Given("word", TextField()))
        .exclude(content__endswith="100%")
        .order_by("content")
        .values_list("content")
    )
    for word in ("Test", "%", "no such word"):
        for wanted in (memories, memories[:1]):
            keys = [memory.pk for memory in wanted]
            with connection.cursor() as cursor:
                cursor.execute(read.statement, {**read.constants, "ids": keys, "word": word})
                found = [content for (content,) in cursor.fetchall()]
            expected = Memory.objects.filter(pk__in=keys, content__contains=word)
            assert found == list(expected.order_by("content").values_list("content", flat=True))


@pytest.mark.django_db
def test_a_column_that_django_converts_is_refused() -> None:
    with pytest.raises(TypeError, match="Read columns .* of Memory as text"):
        compiled(Memory.objects.values_list("pk", "metadata"))
