"""The app of chats, sessions, messages and turns."""

import logging
from typing import Any
from uuid import UUID

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.outgoing_webhooks import deliveries_due
from sessions_app.signals import business_wrote, cards_due, one_person_found

CARDS_AT_ONCE = 50

logger = logging.getLogger(__name__)


class SessionsAppConfig(AppConfig):
    name = "sessions_app"
    verbose_name = _("Conversations")

    def ready(self) -> None:
        from memories_app.embedding_models.vectors import vectors_due  # noqa: PLC0415 imports models
        from memoryproject.foundation.audit import audit_events  # noqa: PLC0415 imports models
        from sessions_app.embedding import checks  # noqa: F401, PLC0415 registers the checks
        from sessions_app.turns import checks as accounts  # noqa: F401, PLC0415 registers one

        one_person_found.connect(_merge_chats, dispatch_uid="merge_chats")
        cards_due.connect(_let_cards_be_made, dispatch_uid="let_cards_be_made")
        business_wrote.connect(_let_promises_be_read, dispatch_uid="let_promises_be_read")
        vectors_due.connect(_let_vectors_be_made, dispatch_uid="let_vectors_be_made")
        audit_events.chats_shown.connect(_show_chats, dispatch_uid="show_chats")
        audit_events.chats_meant.connect(_find_chats, dispatch_uid="find_chats")
        deliveries_due.connect(_let_webhooks_be_sent, dispatch_uid="let_webhooks_be_sent")


def _merge_chats(**arguments: Any) -> Any:
    from sessions_app.merging.merge_chats import chats_merge  # noqa: PLC0415 slow to import

    return chats_merge(**arguments)


def _show_chats(*, chat_ids: set[UUID], **_: Any) -> dict[UUID, Any]:
    from sessions_app.presentation.links import people_of  # noqa: PLC0415 imports models

    return people_of(chat_ids)


def _find_chats(*, text: str, **_: Any) -> list[UUID]:
    from sessions_app.conversations.chat_queries import chats_meant  # noqa: PLC0415 imports models

    return [chat.pk for chat in chats_meant(text)]


def _let_cards_be_made(*, session_ids: list[UUID], **_: Any) -> None:
    """Queue due cards for the workers, in batches."""

    from sessions_app.cards.dependencies import enqueue_cards  # noqa: PLC0415 imports models

    for start in range(0, len(session_ids), CARDS_AT_ONCE):
        enqueue_cards(session_ids[start : start + CARDS_AT_ONCE])


def _let_promises_be_read(*, session_id: UUID, texts: list[str], **_: Any) -> None:
    """Queue a session, but not for each text: an answer that promises nothing waits for nothing."""

    from sessions_app.promises.dependencies import enqueue_promises  # noqa: PLC0415 imports models
    from sessions_app.promises.promise_patterns import may_matter  # noqa: PLC0415 slow to import

    if any(map(may_matter, texts)):
        enqueue_promises(session_id)


def _let_webhooks_be_sent(*, endpoint_id: int, **_: Any) -> None:
    from memoryproject.foundation.process.jobs import enqueue  # noqa: PLC0415 apps must be loaded first

    name = f"webhooks to endpoint {endpoint_id}"
    enqueue("sessions_app.tasks.send_webhooks", endpoint_id, task_name=name)


def _let_vectors_be_made(**_: Any) -> None:
    from sessions_app.embedding.dependencies import enqueue_memory_vectors  # noqa: PLC0415 imports models

    enqueue_memory_vectors()
