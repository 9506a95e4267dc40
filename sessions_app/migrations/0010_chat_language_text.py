"""Describe a chat's language: it is one of more than two now. The database stays as it is."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("sessions_app", "0009_stemmed_words")]

    operations: ClassVar = [
        migrations.AlterField(
            model_name="chat",
            name="language",
            field=models.CharField(
                blank=True,
                help_text="Of the chat's last message, such as en.",
                max_length=2,
                verbose_name="language",
            ),
        ),
    ]
