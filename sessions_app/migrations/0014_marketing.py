"""Keep whether a person wants marketing messages, as they said on WhatsApp."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("sessions_app", "0013_own_addresses")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="chataccess",
            name="marketing_at",
            field=models.DateTimeField(
                blank=True, null=True, verbose_name="marketing messages decided at"
            ),
        ),
        migrations.AddField(
            model_name="chataccess",
            name="marketing_stopped",
            field=models.BooleanField(
                db_default=False, default=False, verbose_name="marketing messages stopped"
            ),
        ),
    ]
