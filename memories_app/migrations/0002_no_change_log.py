"""Recall asks PostgreSQL: nothing reads the log of changed texts any more."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memories_app", "0001_initial"),
        ("sessions_app", "0008_no_change_log"),
    ]

    operations = [
        migrations.RunSQL(
            "DROP FUNCTION memories_app_log_memories() CASCADE;"
            "DROP FUNCTION memories_app_log_vectors() CASCADE;",
            migrations.RunSQL.noop,
        ),
        migrations.DeleteModel(name="TextChange"),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                condition=models.Q(("content_hash__gt", ""), ("status", "active")),
                fields=["scope", "-created_at", "memory_id"],
                name="memories_of_scope",
            ),
        ),
    ]
