"""Index the replies from the business's phone, which end what waits for staff."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('sessions_app', '0025_rated_questions'),
    ]

    operations = [
        # One that was interrupted leaves an invalid index.
        migrations.RunSQL(
            'DROP INDEX CONCURRENTLY IF EXISTS messages_by_phone', migrations.RunSQL.noop
        ),
        AddIndexConcurrently(
            model_name='message',
            index=models.Index(
                condition=models.Q(('metadata__has_key', 'by_phone')),
                fields=['chat', 'received_at'],
                name='messages_by_phone',
            ),
        ),
    ]
