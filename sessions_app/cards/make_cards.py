"""Make the card of a session from its stored messages."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from cards_app.memory_card import Card, card_of_lines
from cards_app.models import MemoryCard
from cards_app.rules.card import ALGORITHM_VERSION
from cards_app.rules.judge import MEANING_MODEL
from cards_app.rules.session_data import Line
from cards_app.rules.statements import Meaning
from cards_app.services import card_store
from sessions_app.conversations.session_lifecycle import card_put_off
from sessions_app.models import CardWork, ChatSession, Message, SummarizationMetadata
from sessions_app.models.messages import Role

logger = logging.getLogger(__name__)

ROWS_AT_ONCE = 500
# How often a card is started again at once because its session changed meanwhile.
TRIES = 5

OF_OURS = ["command", "system_text"]


class SessionNotFoundError(Exception):
    """No session has this id."""


class SessionBusyError(Exception):
    """The session changed each time its card was made. It stays due."""


def card_make(*, session_id: UUID, meaning: Meaning | None = None) -> MemoryCard:
    """Make and store the card of a session; return the stored one if it is still current.

    No row is locked while the messages are read: if the session changes meanwhile, it is read
    again. meaning: see ``generate_memory_card``. Raises SessionNotFoundError and SessionBusyError.
    """
    for _ in range(TRIES):
        token = _begin(session_id)
        session = ChatSession.objects.filter(pk=session_id).first()
        if session is None:
            raise SessionNotFoundError(f"There is no session {session_id}.")
        version = ALGORITHM_VERSION if meaning is None else f"{ALGORITHM_VERSION} {MEANING_MODEL}"
        digest = hashlib.sha256(version.encode())
        card = card_of_lines(
            _digested(spoken_lines(session_id), digest),
            session_id=str(session_id),
            extracted_at=timezone.now(),
            meaning=meaning,
        )
        stored = _store(card, digest.hexdigest(), session.message_counter, token)
        if stored is not None:
            return stored
    raise SessionBusyError(f"Session {session_id} changes all the time: its card is made later.")


def cards_make(*, session_ids: list[UUID], make: Callable[..., MemoryCard] = card_make) -> int:
    """Make the cards of these sessions; return how many.

    Sessions that are gone are skipped, as are those that change all the time, which stay due. A
    card that fails doesn't block the others: it is due again later.
    """
    made = 0
    for session_id in session_ids:
        try:
            make(session_id=session_id)
        except (SessionNotFoundError, SessionBusyError) as error:
            logger.info("%s", error)
        except Exception:
            logger.exception("The card of session %s can't be made now.", session_id)
            card_put_off(session_id=session_id)
        else:
            made += 1
    return made


def spoken_lines(session_id: UUID) -> Iterator[Line]:
    """Yield the messages of people and of the assistant in a session, in order.

    Commands, the system's own messages, deleted messages and summaries of existing messages are
    left out. If messages were deleted after they were summarised, the summary takes their place.
    """
    summary = _summary_instead(session_id)
    if summary is not None:
        yield Line(str(Role.SUMMARY), summary)
    messages = Message.objects.filter(session_id=session_id, revoked_at__isnull=True).exclude(
        role=Role.SUMMARY, metadata__has_key="summaryMetadataId"
    )
    spoken = messages.exclude(metadata__has_any_keys=OF_OURS).order_by("order_num")
    rows = spoken.values_list("role", "content").iterator(chunk_size=ROWS_AT_ONCE)
    for role, content in rows:
        yield Line(role, content)


def _summary_instead(session_id: UUID) -> str | None:
    made = SummarizationMetadata.objects.filter(session_id=session_id, sources_deleted=True)
    newest = made.order_by("-number").values_list("summary_message__content", flat=True)
    return newest.first()


def _digested(lines: Iterator[Line], digest: hashlib._Hash) -> Iterator[Line]:
    """Yield the lines, and add each to the digest."""
    for line in lines:
        for part in (line.role, line.content):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        yield line


def _begin(session_id: UUID) -> UUID:
    """Return the token of the work; mark the card as due first if it isn't."""
    with transaction.atomic():
        work = CardWork.objects.filter(pk=session_id).first()
        if work is None:
            locked = ChatSession.objects.select_for_update(no_key=True).filter(pk=session_id)
            if locked.first() is None:
                raise SessionNotFoundError(f"There is no session {session_id}.")
            CardWork.objects.bulk_create(
                [CardWork(session_id=session_id, due_at=timezone.now())], ignore_conflicts=True
            )
            work = CardWork.objects.get(pk=session_id)
    return work.token


def _store(card: Card, digest: str, last_order: int, token: UUID) -> MemoryCard | None:
    """Store the card; return None if the session has changed since the work was started."""
    session_id = UUID(card.session_id)
    with transaction.atomic():
        session = ChatSession.objects.select_for_update(no_key=True).filter(pk=session_id).first()
        if session is None:
            raise SessionNotFoundError(f"There is no session {session_id}.")
        work = CardWork.objects.select_for_update(no_key=True).filter(pk=session_id).first()
        if work is None or work.token != token:
            # Another worker made it, or the session changed: the lines that were read may be old.
            return None
        stored = card_store(
            card=card,
            chat_id=session.chat_id,
            session_started_at=session.created_at,
            source_digest=digest,
            last_order=last_order,
        )
        work.delete()
    return stored
