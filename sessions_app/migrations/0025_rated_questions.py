"""Put the questions whose answers staff rated good before into the question set, one by one."""

from django.db import migrations


def questions_add(apps, schema_editor):
    """Put the questions whose answers were rated good into the set."""
    ratings = apps.get_model("sessions_app", "AnswerRating").objects.filter(is_good=True)
    made = apps.get_model("sessions_app", "CheckQuestion").objects
    replays = apps.get_model("sessions_app", "TurnReplay").objects
    known = ratings.filter(turn__by_hand=False, turn__message__isnull=False)
    known = known.filter(turn__message__revoked_at__isnull=True)
    known = known.exclude(turn__message__content="").exclude(turn__message__content__startswith="/")
    rows = known.select_related("turn").order_by("rated_at")
    for rating in rows.iterator(chunk_size=500):
        turn = rating.turn
        recalled = replays.filter(turn=turn.pk).values_list("recalled", flat=True).first() or []
        used = [
            (str(each["id"]), each.get("score"))
            for each in recalled
            if each.get("source") == "memory" and each.get("in_prompt")
        ]
        values = {
            "user_role": turn.user_role,
            "memory_id": used[0][0] if used else None,
            "source": "answer",
            "created_by": rating.user_name,
            "passed_at": (turn.finished_at or turn.created_at) if used else None,
            "recalled_then": used,
        }
        made.get_or_create(message_id=turn.message_id, defaults=values)


class Migration(migrations.Migration):
    # It may be interrupted and run again: what is in the set stays there once.
    atomic = False

    dependencies = [
        ('sessions_app', '0024_broadcasts'),
    ]

    operations = [
        migrations.RunPython(questions_add, migrations.RunPython.noop),
    ]
