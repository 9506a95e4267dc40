"""Let a message be found by the token in its id: see sessions_app/models/message_ids.py."""

import django.db.models.lookups
from django.db import migrations, models

import sessions_app.models.message_ids
from sessions_app.models.message_ids import CREATE_FUNCTION, DROP_FUNCTION


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0001_initial'),
    ]

    operations = [
        migrations.RunSQL(CREATE_FUNCTION, DROP_FUNCTION),
        migrations.AddIndex(
            model_name='inbounddelivery',
            index=models.Index(sessions_app.models.message_ids.MessageToken(models.F('subject_id')), condition=models.Q(django.db.models.lookups.IsNull(sessions_app.models.message_ids.MessageToken(models.F('subject_id')), False)), name='deliveries_by_token'),
        ),
        migrations.AddIndex(
            model_name='message',
            index=models.Index(sessions_app.models.message_ids.MessageToken(models.F('provider_message_id')), condition=models.Q(django.db.models.lookups.IsNull(sessions_app.models.message_ids.MessageToken(models.F('provider_message_id')), False)), name='messages_by_token'),
        ),
        migrations.AddIndex(
            model_name='outboundpart',
            index=models.Index(sessions_app.models.message_ids.MessageToken(models.F('provider_message_id')), condition=models.Q(django.db.models.lookups.IsNull(sessions_app.models.message_ids.MessageToken(models.F('provider_message_id')), False)), name='parts_by_token'),
        ),
    ]
