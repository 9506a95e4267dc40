"""Lists of memories are sorted by their last change."""

from typing import ClassVar

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies: ClassVar = [("memories_app", "0007_keyed_memories_indexed")]

    operations: ClassVar = [
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS memories_by_change", migrations.RunSQL.noop
        ),
        AddIndexConcurrently(
            "memory",
            models.Index(fields=["-updated_at", "-memory_id"], name="memories_by_change"),
        ),
    ]
