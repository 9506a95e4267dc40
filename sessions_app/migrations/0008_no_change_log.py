"""Recall asks PostgreSQL: nothing reads the log of changed texts any more."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0007_stored_thoughts")]

    operations = [
        migrations.RunSQL(
            "DROP FUNCTION sessions_app_log_messages() CASCADE;"
            "DROP FUNCTION sessions_app_log_vectors() CASCADE;",
            migrations.RunSQL.noop,
        ),
    ]
