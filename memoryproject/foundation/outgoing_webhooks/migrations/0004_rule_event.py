"""Let endpoints ask for the event of rules."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('hooks', '0003_event_log'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='webhookendpoint',
            name='hook_event_types_known',
        ),
        migrations.AddConstraint(
            model_name='webhookendpoint',
            constraint=models.CheckConstraint(condition=models.Q(('event_types__contained_by', ['memory.created', 'memory.changed', 'memory.forgotten', 'message.forgotten', 'session.forgotten', 'document.forgotten', 'chat.erased', 'session.expired', 'card.made', 'message.received', 'turn.answered', 'turn.degraded', 'turn.failed', 'handover.requested', 'rule.matched'])), name='hook_event_types_known'),
        ),
    ]
