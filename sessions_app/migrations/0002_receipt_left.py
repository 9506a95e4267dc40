from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("sessions_app", "0001_initial")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="forgetreceipt",
            name="left",
            field=models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                verbose_name="still there",
            ),
        ),
    ]
