"""Index memories anew: words are stemmed in more languages, and nothing is guessed any more.

Committed by batches: interrupted, it begins again and changes only what is still indexed as before.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations

from memoryproject.foundation.text.terms import MAX_TERMS, index_terms, index_text

BATCH = 1_000


def index_anew(apps: Any, schema_editor: Any) -> None:
    memories = apps.get_model("memories_app", "Memory").objects.order_by("pk")
    last = None
    while batch := list(
        (memories if last is None else memories.filter(pk__gt=last)).only(
            "pk", "content", "tags", "terms", "term_count"
        )[:BATCH]
    ):
        last = batch[-1].pk
        changed = []
        for memory in batch:
            indexed = index_text(memory.content)
            known = set(indexed.terms)
            of_tags = dict.fromkeys(term for tag in memory.tags for term in index_terms(tag))
            terms = [*indexed.terms, *(term for term in of_tags if term not in known)][:MAX_TERMS]
            if (memory.terms, memory.term_count) != (terms, indexed.length):
                memory.terms, memory.term_count = terms, indexed.length
                changed.append(memory)
        memories.bulk_update(changed, ["terms", "term_count"], batch_size=BATCH)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("memories_app", "0002_no_change_log")]

    operations = [migrations.RunPython(index_anew, migrations.RunPython.noop)]
