"""Hand a conversation over to a person of the business.

The client asks for one, says three times that the answer was none, reaches a limit of the day, or
the model calls for one. The client is told so with the opening hours, the assistant is paused, the
chat needs attention, and the operator and integrators are told.
"""

from datetime import timedelta

from django.utils import timezone

from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.outgoing_webhooks.deliveries import HookEvent, hooks_raise
from memoryproject.foundation.outgoing_webhooks.models import EventType
from memoryproject.foundation.staff_notices import Kind, notify
from sessions_app.conversations import history_queries, phrases, session_lifecycle
from sessions_app.conversations.buttons import FORWARDED, is_own_turn
from sessions_app.conversations.plain_words import denies, wants_person
from sessions_app.hours import hours_of
from sessions_app.hours_answers import opening_line
from sessions_app.models import GODFATHER, Message, Role, Turn, TurnState
from sessions_app.models.takeover import PauseCause
from sessions_app.models.turns import HANDOVER
from sessions_app.turns import bursts, turn_claims

# What the question asks that offers a person.
PERSON = "person"
# The reasons.
ASKED, FAILED, LIMIT, MODEL = "asked", "failed", "limit", "model"
_TEXTS = {ASKED: "handover", FAILED: "handover_failed"}
# So long the assistant waits for a person. Who replies has the time of a reply from then on.
WAITS = timedelta(hours=12)
MAX_DENIALS = 3
# Between two denials people ask in other words.
LOOKED_AT = 6
MAX_HOURS = 500


def can_be_handed_over(turn: Turn) -> bool:
    """Return whether there is somebody to hand over to: the owner, and a group, talk to people."""
    return turn.user_role != GODFATHER and not turn.chat.is_group


def handover_reason(turn: Turn, text: str) -> str:
    """Return why the message's conversation goes to a person now; "" if it doesn't."""
    if not can_be_handed_over(turn):
        return ""
    before = bursts.texts_before(turn, (TurnState.MERGED, TurnState.HELD))
    if (is_own_turn(turn) and wants_person(text)) or any(map(wants_person, before)):
        return ASKED
    return FAILED if _denials(turn, text) >= MAX_DENIALS else ""


def handover_is_offered(turn: Turn, text: str) -> bool:
    """Return whether the answer asks if a person is wanted: before the last denial."""
    return can_be_handed_over(turn) and _denials(turn, text) == MAX_DENIALS - 1


def _denials(turn: Turn, text: str) -> int:
    """Return how many of the last messages said that the answer was none; 0 if this one doesn't."""
    if turn.message is None or not is_own_turn(turn) or not denies(text):
        return 0
    session = turn.message.session_id
    handed_over = Turn.objects.filter(session=session, context__has_key=HANDOVER).order_by("-id")
    since = handed_over.values_list("message__order_num", flat=True).first() or 0
    earlier = Message.objects.filter(
        session=session,
        role=Role.USER,
        order_num__gt=since,
        order_num__lt=turn.message.order_num,
        revoked_at=None,
    ).exclude(metadata__has_any_keys=FORWARDED)
    texts = earlier.order_by("-order_num").values_list("content", flat=True)[:LOOKED_AT]
    return 1 + sum(map(denies, texts))


def handover_text(turn: Turn, reason: str) -> str:
    """Return what the client is told: also when somebody answers, if that isn't now.

    Where staff have written the opening hours in words, the words.
    """
    language = turn.chat.language
    lines = [phrases.text_for(_TEXTS.get(reason, "handover_waiting"), language)]
    profile, now = history_queries.profile_current(), timezone.now()
    if hours := hours_of(profile):
        if not hours.is_open(now):
            lines += opening_line(hours, "hours_reply", language, now)
    elif words := profile.opening_hours.strip()[:MAX_HOURS]:
        lines.append(phrases.text_for("handover_hours", language, hours=words))
    return "\n".join(lines)


def hand_over(turn: Turn, reason: str) -> None:
    """Pause the assistant and tell who is to be told.

    Call it in the transaction that stores the answer, with the chat locked. A pause that staff have
    set themselves stays. At a limit there is nothing to pause: commands still work.
    """
    now = timezone.now()
    before = turn_claims.pause_in_force(turn.chat_id, now)
    if reason != LIMIT and (before is None or before.is_sliding):
        turn_claims.chat_pause(
            chat_id=turn.chat_id,
            until=now + WAITS,
            by=None,
            actor=SYSTEM,
            now=now,
            cause=PauseCause.PERSON,
        )
    data = {
        "turn_id": str(turn.turn_id),
        "session_id": str(turn.session_id) if turn.session_id else None,
        "message_id": str(turn.message_id) if turn.message_id else None,
        "reason": reason,
    }
    hooks_raise([HookEvent(EventType.HANDOVER_REQUESTED, turn.turn_id, data, turn.chat_id)])
    notify(Kind.ASKED, [(turn.turn_id, turn.chat_id)])
    session_lifecycle.rules_look(turn.chat_id)
