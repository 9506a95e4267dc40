from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0002_receipt_left")]

    operations = [
        migrations.AddField(
            model_name="mediafile",
            name="receipt_id",
            field=models.UUIDField(
                blank=True, editable=False, null=True, verbose_name="receipt id"
            ),
        ),
        migrations.AddIndex(
            model_name="mediafile",
            index=models.Index(
                condition=models.Q(("receipt_id__isnull", False)),
                fields=["receipt_id"],
                name="media_of_receipt",
            ),
        ),
    ]
