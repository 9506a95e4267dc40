"""Rebuild a session from its messages (RECOVERY-001)."""

import logging
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from django.db import transaction
from django.utils import timezone

from memoryproject.foundation.commands import ReportingCommand, flag, folder_given, option
from sessions_app.conversations import chat_addresses, message_text, session_lifecycle
from sessions_app.conversations.message_store import stored_tokens, window_recompute
from sessions_app.embedding.facade import embedder
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.facade import IntakeRules
from sessions_app.legacy_import import import_folder, import_session, parse_sessions, session_folder
from sessions_app.models import ChatSession, Message, Role, SessionStatus, SummarizationMetadata

SessionState = dict[str, Any]


class Command(ReportingCommand):
    """Run the command. It can be run again at any time."""

    json_help = "Print before and after as JSON."
    refusals = {**ReportingCommand.refusals, session_folder.FolderError: "{error}"}

    arguments = [
        option("session_id", metavar="SESSION_ID"),
        option("--from", dest="folder", metavar="DIR", type=folder_given),
        flag("--no-vectors"),
    ]

    def run(self, options: dict[str, Any]) -> None:
        session_id = parse_sessions.session_uuid(options["session_id"])
        try:
            session = ChatSession.objects.filter(pk=session_id).first()
            before = session_state(session) if session else None
            taken = self._take_in(session_id, options) if options["folder"] else None
            after, changed = session_rebuild(session_id=session_id, rules=build_intake_rules())
        except ChatSession.DoesNotExist as error:
            raise CommandError(_not_found(options)) from error
        document = {
            "session_id": str(session_id),
            "before": before,
            "after": after,
            "messages_changed": changed,
            "taken_in": taken.as_dict() if taken else None,
        }
        lines = [session_folder.as_text(taken)] if taken else []
        lines.append(f"session {session_id}")
        for name, value in after.items():
            lines.append(f"  {name}: {(before or {}).get(name, 'none')} -> {value}")
        lines.append(f"  messages with other tokens or words: {changed}")
        self.report(options, document, "\n".join(lines), indent=2)
        if taken and taken.skipped:
            raise CommandError(f"{len(taken.skipped)} of its messages were skipped: see the log.")

    def _take_in(self, session_id: UUID, options: dict[str, Any]) -> session_folder.ImportReport:
        return import_folder.FolderImport(
            folder=session_folder.LegacyFolder(options["folder"]),
            rules=build_intake_rules(),
            now=timezone.now(),
            embedder=None if options["no_vectors"] else embedder(),
            rebuild_orphans=True,
        ).run(only=session_id)


def _not_found(options: dict[str, Any]) -> str:
    if options["folder"]:
        return (
            f"No session {options['session_id']}, neither in the database nor in messages that "
            "can be used: the log says what was found."
        )
    return (
        f"No session {options['session_id']} in the database. Where its old files are at hand: "
        f"session_rebuild {options['session_id']} --from DIR"
    )


# Compute a session's derived values again from its messages (RECOVERY-001).

logger = logging.getLogger(__name__)

BATCH = 500
DERIVED = ("message_counter", "total_tokens", "window_start", "summarized_until")
INDEXED = ["tokens", "terms", "term_count"]


def session_rebuild(*, session_id: UUID, rules: IntakeRules) -> tuple[SessionState, int]:
    """Set a session's derived values from its stored messages.

    Return them, and how many messages had wrong tokens or terms.

    These are its counter, window, tokens, last_active and the end of its summaries, and the
    tokens and terms of each message. The card of an ended session is made again. Raises
    ChatSession.DoesNotExist.
    """
    with transaction.atomic():
        chat = chat_addresses.chat_of_session(session_id)
        sessions = ChatSession.objects.select_for_update(no_key=True)
        if chat is None:
            raise ChatSession.DoesNotExist
        session = sessions.get(pk=session_id)
        before = session_state(session)
        changed = _index_again(session)
        window_recompute(
            session=session, token_limit=import_session.token_limit(chat=chat, rules=rules)
        )
        newest = SummarizationMetadata.objects.filter(session=session).order_by("-number")
        summarized = newest.values_list("last_order", flat=True).first()
        session.summarized_until = summarized or 0
        messages = session.messages.exclude(role=Role.SUMMARY)
        last = messages.order_by("-order_num").first()
        session.last_active = last.received_at if last else session.last_active
        session.save(update_fields=[*DERIVED, "last_active"])
        if session.status != SessionStatus.ACTIVE:
            session_lifecycle.cards_request(session_ids=[session.pk])
    after = session_state(session)
    if changed or before != after:
        logger.info("Session %s was rebuilt from its messages.", session_id)
    return after, changed


def session_state(session: ChatSession) -> SessionState:
    """Return the derived values of a session's row; ``last_active`` in ISO form."""
    derived = {name: getattr(session, name) for name in DERIVED}
    last_active = session.last_active.isoformat()
    return {"messages": session.messages.count(), **derived, "last_active": last_active}


def _index_again(session: ChatSession) -> int:
    """Correct the tokens and terms of the texts; return how many messages were wrong."""
    wrong = last = 0
    ordered = session.messages.order_by("order_num")
    while batch := list(ordered.filter(order_num__gt=last)[:BATCH]):
        last = batch[-1].order_num
        changed = [message for message in batch if _corrected(message)]
        Message.objects.bulk_update(changed, INDEXED)
        wrong += len(changed)
    return wrong


def _corrected(message: Message) -> bool:
    """Set the values derived from the text; return whether they changed."""
    old = [getattr(message, name) for name in INDEXED]
    indexed = message_text.indexed_of(message.content, message.metadata)
    message.tokens = stored_tokens(message.content, message.metadata)
    message.terms, message.term_count = indexed.terms, indexed.length
    return old != [getattr(message, name) for name in INDEXED]
