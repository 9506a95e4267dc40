"""When a memory was said, and when it holds."""

import django.utils.timezone
from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("memories_app", "0003_stemmed_words")]

    operations = [
        migrations.AddField(
            model_name="memory",
            name="said_at",
            field=models.DateTimeField(
                blank=True,
                db_default=Now(),
                default=django.utils.timezone.now,
                verbose_name="said",
            ),
        ),
        migrations.AddField(
            model_name="memory",
            name="valid_from",
            field=models.DateTimeField(blank=True, null=True, verbose_name="valid from"),
        ),
        migrations.AddField(
            model_name="memory",
            name="valid_until",
            field=models.DateTimeField(
                blank=True,
                help_text="The last moment at which it holds. After it, it counts as ended.",
                null=True,
                verbose_name="valid until",
            ),
        ),
        # Stored memories were said when they were last mentioned.
        migrations.RunSQL(
            "UPDATE memories_app_memory SET said_at = last_told_at",
            reverse_sql=migrations.RunSQL.noop,
        ),
    ]
