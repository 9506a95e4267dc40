"""Let a message be found by the token in its id: see sessions_app/models/message_ids.py."""

import django.db.models.lookups
from django.db import migrations, models


# A string is the byte 0x18, its length and its characters. The token is the last one, and a zero
# byte ends the whole. An id of any other layout has no token.
CREATE_FUNCTION = r"""
CREATE FUNCTION sessions_app_message_token(message_id text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $function$
DECLARE
    code text := translate(rtrim(substr(message_id, 7), '='), '-_', '+/');
    found text[];
BEGIN
    IF message_id !~ '^wamid\.[A-Za-z0-9+/_-]{16,248}={0,2}$' OR length(code) % 4 = 1 THEN
        RETURN NULL;
    END IF;
    code := code || repeat('=', (4 - length(code) % 4) % 4);
    found := regexp_match(
        encode(decode(code, 'base64'), 'escape'),
        E'\x18(.)([0-9A-Za-z._:-]{8,127})(?:\\\\000)?$'
    );
    IF ascii(found[1]) = length(found[2]) THEN
        RETURN found[2];
    END IF;
    RETURN NULL;
END
$function$
"""
DROP_FUNCTION = "DROP FUNCTION sessions_app_message_token(text)"


def token_of(field):
    return models.Func(
        models.F(field), function="sessions_app_message_token", output_field=models.TextField()
    )


class Migration(migrations.Migration):

    dependencies = [
        ("sessions_app", "0003_files_of_receipts"),
    ]

    operations = [
        migrations.RunSQL(CREATE_FUNCTION, DROP_FUNCTION),
        migrations.AddIndex(
            model_name="inbounddelivery",
            index=models.Index(
                token_of("subject_id"),
                condition=models.Q(django.db.models.lookups.IsNull(token_of("subject_id"), False)),
                name="deliveries_by_token",
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                token_of("provider_message_id"),
                condition=models.Q(django.db.models.lookups.IsNull(token_of("provider_message_id"), False)),
                name="messages_by_token",
            ),
        ),
        migrations.AddIndex(
            model_name="outboundpart",
            index=models.Index(
                token_of("provider_message_id"),
                condition=models.Q(django.db.models.lookups.IsNull(token_of("provider_message_id"), False)),
                name="parts_by_token",
            ),
        ),
    ]
