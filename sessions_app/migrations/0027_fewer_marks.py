"""Mark a quarter of an hour once in a transaction, and for those states of a turn that are counted.

A message and its answer wrote seven marks, of which three tell all. Programs of the version before
write as they did.
"""

from django.db import migrations

# What the transaction marked last, and the id of that mark. It is undone with the savepoint that is
# rolled back, as the mark is. What marks many quarters, such as an import, may mark one again.
ONCE = """
CREATE OR REPLACE FUNCTION dashboard_mark_once() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    known text := current_setting('dashboard.marked', true);
    marked text := extract(epoch FROM NEW.quarter)::text;
BEGIN
    IF split_part(known, ' ', 1) = marked
        AND EXISTS (SELECT FROM dashboard_mark
                    WHERE id = nullif(split_part(known, ' ', 2), '')::bigint) THEN
        RETURN NULL;
    END IF;
    PERFORM set_config('dashboard.marked', marked || ' ' || NEW.id, true);
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER mark_once BEFORE INSERT ON dashboard_mark
    FOR EACH ROW EXECUTE FUNCTION dashboard_mark_once();
"""
# The states that rollups.sql counts.
COUNTED = "CASE WHEN {0}.state IN ('sent', 'failed', 'missed', 'held') THEN {0}.state END"
COLUMNS = '{0}.created_at, {0}.chat_id, {0}.finished_at, {0}.message_id'
TURNS = """
CREATE OR REPLACE TRIGGER mark_updated
    AFTER UPDATE OF created_at, chat_id, state, finished_at, message_id ON sessions_app_turn
    FOR EACH ROW WHEN (({old}) IS DISTINCT FROM ({new}))
    EXECUTE FUNCTION sessions_app_turn_mark();
"""


def _turns(state: str) -> str:
    columns = f'{COLUMNS}, {state}'
    return TURNS.format(old=columns.format('OLD'), new=columns.format('NEW'))


class Migration(migrations.Migration):
    dependencies = [
        ('dashboard', '0003_notifications'),
        ('sessions_app', '0026_replies_by_phone_indexed'),
    ]

    operations = [
        migrations.RunSQL(
            ONCE,
            'DROP TRIGGER mark_once ON dashboard_mark; DROP FUNCTION dashboard_mark_once();',
        ),
        migrations.RunSQL(_turns(COUNTED), _turns('{0}.state')),
    ]
