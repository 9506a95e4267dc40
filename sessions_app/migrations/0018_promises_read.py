"""Note how far each session was read for promises; null: not at all."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0017_partitions")]

    operations = [
        migrations.AddField(
            model_name="chatsession",
            name="promises_until",
            field=models.PositiveIntegerField(
                blank=True, editable=False, null=True, verbose_name="read for promises up to"
            ),
        ),
    ]
