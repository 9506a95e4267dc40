"""Let staff fix a chat's language."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("sessions_app", "0014_marketing")]

    operations: ClassVar = [
        migrations.AlterField(
            model_name="chat",
            name="language",
            field=models.CharField(
                blank=True,
                help_text="The one that the person writes in, such as en.",
                max_length=2,
                verbose_name="language",
            ),
        ),
        migrations.AddField(
            model_name="chat",
            name="fixed_language",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Chosen by staff. Empty: it is learned from what the person writes.",
                max_length=2,
                verbose_name="fixed language",
            ),
        ),
    ]
