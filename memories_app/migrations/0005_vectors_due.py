"""Workers make the vectors of memories that are stored without one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories_app", "0004_fact_times")]

    operations = [
        migrations.AddField(
            model_name="memory",
            name="vector_due_at",
            field=models.DateTimeField(
                blank=True, editable=False, null=True, verbose_name="vector due at"
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                condition=models.Q(("vector_due_at__isnull", False)),
                fields=["vector_due_at"],
                name="memories_with_vector_due",
            ),
        ),
    ]
