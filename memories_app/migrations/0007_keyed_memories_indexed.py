"""Find memories by their key and by parts of their value."""

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

DROP = "DROP INDEX CONCURRENTLY IF EXISTS"


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("memories_app", "0006_keyed_memories")]

    # An interrupted run leaves an invalid index.
    operations = [
        migrations.RunSQL(f"{DROP} memories_keyed", migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name="memory",
            index=models.Index(
                fields=["scope", "namespace", "key"],
                condition=models.Q(("key__isnull", False)),
                name="memories_keyed",
            ),
        ),
        migrations.RunSQL(f"{DROP} memory_value", migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name="memory",
            index=GinIndex(
                OpClass(models.F("value"), name="jsonb_path_ops"),
                condition=models.Q(("value__isnull", False)),
                name="memory_value",
            ),
        ),
    ]
