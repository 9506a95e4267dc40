"""Index messages anew: words are stemmed in more languages, and nothing is guessed any more.

Committed by batches: interrupted, it begins again and changes only what is still indexed as before.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations

from memoryproject.foundation.text.terms import index_text

BATCH = 1_000
# The mark of a text that asks for something stays.
ASKING = "!asks"


def index_anew(apps: Any, schema_editor: Any) -> None:
    messages = apps.get_model("sessions_app", "Message").objects.order_by("pk")
    last = None
    while batch := list(
        (messages if last is None else messages.filter(pk__gt=last)).only(
            "pk", "content", "metadata", "terms", "term_count"
        )[:BATCH]
    ):
        last = batch[-1].pk
        changed = []
        for message in batch:
            name = message.metadata.get("sender_name")
            text = message.content
            indexed = index_text(f"{name}: {text}" if name and text else text)
            terms = [*indexed.terms, *([ASKING] if ASKING in message.terms else [])]
            # Messages that aren't found by their words have no terms.
            if message.terms and message.terms != terms:
                message.terms, message.term_count = terms, indexed.length
                changed.append(message)
        messages.bulk_update(changed, ["terms", "term_count"], batch_size=BATCH)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("sessions_app", "0008_no_change_log")]

    operations = [migrations.RunPython(index_anew, migrations.RunPython.noop)]
