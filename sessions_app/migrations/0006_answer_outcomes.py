"""Give stored turns an outcome, and mark the apologies among the stored messages.

Nearly all turns were answered: the column's first default says so without a rewrite of the table.
Only turns with an error or an unusual state are changed then.
"""

from django.db import migrations, models

# Of the errors, these are limits of a chat. An answer of what is remembered begins with our words.
OUTCOMES = """
UPDATE sessions_app_turn SET outcome = CASE
    WHEN state IN ('pending', 'running', 'merged', 'held', 'cancelled') THEN ''
    WHEN state IN ('missed', 'refused') THEN 'refused'
    WHEN state = 'failed' THEN 'failed'
    WHEN error LIKE '{"code": "limit\\_%' OR error LIKE '{"code": "chat\\_%' THEN 'refused'
    WHEN EXISTS (
        SELECT FROM sessions_app_message AS reply
        WHERE reply.message_id = reply_id AND (
            NOT reply.metadata ? 'system_text'
            OR reply.content LIKE '%I can''t reach my language model right now, so%'
            OR reply.content LIKE '%אין כרגע גישה למודל השפה, ולכן%'
        )
    ) THEN 'from_memory'
    ELSE 'failed'
END
WHERE state NOT IN ('sent', 'replied', 'sending', 'unconfirmed') OR error <> ''
"""
# An answer that couldn't be sent is no apology.
APOLOGIES = """
UPDATE sessions_app_message AS reply SET metadata = reply.metadata || '{"apology": true}'
FROM sessions_app_turn AS turn
WHERE turn.outcome = 'failed' AND turn.state <> 'failed' AND turn.reply_id = reply.message_id
    AND reply.metadata ? 'system_text'
"""


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0005_kept_open")]

    operations = [
        migrations.AddField(
            model_name="turn",
            name="outcome",
            field=models.CharField(
                blank=True,
                choices=[
                    ("answered", "Answered"),
                    ("from_memory", "From memory"),
                    ("refused", "Refused"),
                    ("failed", "Failed"),
                ],
                default="answered",
                max_length=16,
                verbose_name="outcome",
            ),
        ),
        migrations.AlterField(
            model_name="turn",
            name="outcome",
            field=models.CharField(
                blank=True,
                choices=[
                    ("answered", "Answered"),
                    ("from_memory", "From memory"),
                    ("refused", "Refused"),
                    ("failed", "Failed"),
                ],
                default="",
                # Workers of the version before don't know the column.
                db_default="",
                max_length=16,
                verbose_name="outcome",
            ),
        ),
        migrations.RunSQL(OUTCOMES, migrations.RunSQL.noop),
        migrations.RunSQL(APOLOGIES, migrations.RunSQL.noop),
    ]
