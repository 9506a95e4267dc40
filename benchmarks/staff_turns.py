"""The turns of the conversations that the benchmark of the staff's pages is measured on, and what
the providers delivered."""

from __future__ import annotations

from bulk_rows import rows_add

from sessions_app.models import TurnReplay

# Of a few recent sessions nothing is answered yet.
WAITING = "(m.received_at > now() - interval '20 minutes')"


def turns_add() -> None:
    """One for each message of a person. One in thirty went wrong or was not answered."""
    source = """
    (SELECT m.*, r.message_id AS reply, abs(hashtextextended(m.message_id::text, 3)) AS chance
     FROM sessions_app_message m LEFT JOIN sessions_app_message r ON r.answers_id = m.message_id
     WHERE m.role = 'user' AND m.provider = 'cloud' ORDER BY m.received_at) AS m
    """
    odd = (
        "(array['failed','missed','merged','cancelled','unconfirmed','failed'])"
        "[mod(m.chance, 6) + 1]"
    )
    state = f"CASE WHEN {WAITING} THEN 'pending' WHEN reply IS NULL OR mod(m.chance, 40) = 0 THEN"
    failed = "(mod(m.chance, 6) IN (0, 5) AND (reply IS NULL OR mod(m.chance, 40) = 0))"
    values = {
        "chat_id": "m.chat_id",
        "session_id": "m.session_id",
        "message_id": "m.message_id",
        "reply_id": f"CASE WHEN NOT {WAITING} THEN reply END",
        "provider": "m.provider",
        "number_id": "m.number_id",
        "provider_message_id": "m.provider_message_id",
        "user_role": "'client'",
        "asked_at": "m.timestamp",
        "state": f"{state} {odd} ELSE 'sent' END",
        "attempts": "1",
        "created_at": "m.received_at",
        "finished_at": f"CASE WHEN NOT {WAITING} THEN m.received_at + (1 + mod(m.chance, 20))"
        " * interval '1 second' END",
        "error": f"CASE WHEN {failed} THEN 'The chat model did not answer in 30 s.' ELSE '' END",
    }
    rows_add("Turn", source, values)
    _replays_add()


def _replays_add() -> None:
    """For each turn that was worked on, a copy of the replay of a real one."""
    real = TurnReplay.objects.filter(turn__error="").exclude(prompt=[]).count()
    columns = (
        "prompt",
        "recalled",
        "left_out",
        "model",
        "prompt_tokens",
        "completion_tokens",
        "timings",
    )
    source = f"""
    sessions_app_turn t
    JOIN (SELECT {", ".join(f"r.{name}" for name in columns)},
                 row_number() OVER (ORDER BY r.turn_id) - 1 AS place
          FROM sessions_app_turnreplay r JOIN sessions_app_turn t ON t.id = r.turn_id
          WHERE t.error = '' AND r.prompt <> '[]') AS replay
        ON replay.place = mod(abs(hashtextextended(t.message_id::text, 3)), {max(real, 1)})
    WHERE t.state <> 'pending'
        AND NOT EXISTS (SELECT FROM sessions_app_turnreplay WHERE turn_id = t.id)
    """
    values = {"turn_id": "t.id", **{name: f"replay.{name}" for name in columns}}
    rows_add("TurnReplay", source, values)


def deliveries_add() -> None:
    """Add the deliveries of received messages and the parts of sent ones."""
    recent = "m.received_at > now() - interval '30 days'"
    rows_add(
        "InboundDelivery",
        "sessions_app_message m WHERE role = 'user' AND provider = 'cloud' ORDER BY received_at",
        {
            "provider": "'cloud'",
            "delivery_key": "'100000000000001:message:' || m.provider_message_id",
            "event": "'message'",
            "outcome": "'stored'",
            "chat_id": "m.chat_id",
            "message_id": "m.message_id",
            "raw": f"CASE WHEN {recent} THEN jsonb_build_object('text', m.content) END",
            "received_at": "m.received_at",
        },
    )
    rows_add(
        "OutboundPart",
        "sessions_app_turn t JOIN sessions_app_message r ON r.message_id = t.reply_id"
        " WHERE r.provider = 'cloud' ORDER BY t.id",
        {
            "turn_id": "t.id",
            "number": "1",
            "state": "CASE t.state WHEN 'unconfirmed' THEN 'unconfirmed' WHEN 'failed' THEN"
            " 'failed' ELSE 'sent' END",
            "provider": "'cloud'",
            "number_id": "r.number_id",
            "provider_message_id": "r.provider_message_id",
            "delivery_status": "r.delivery_status",
            "started_at": "t.finished_at",
        },
    )
