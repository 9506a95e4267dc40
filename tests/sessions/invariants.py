"""What always holds of conversations; docs/conversations.md lists the same."""

from __future__ import annotations

from django.db.models import Count, Max, Sum

from cards_app.rules.extract import Said, find_entries
from cards_app.rules.session_data import Line
from memoryproject.foundation.text.characters import estimate_tokens
from sessions_app.conversations.message_store import KEEP_LAST
from sessions_app.models import Chat, ChatSession, Message, SummarizationMetadata


def check_all(*, limits: dict[str, int] | None = None) -> None:
    """Check every conversation in the database. ``limits``: the token limit by whatsapp_chat;
    a chat that isn't in it has none to be checked."""
    for chat in Chat.objects.all():
        assert chat.sessions.filter(status="active").count() <= 1
        for session in chat.sessions.all():
            check_numbers(session)
            check_window(session, (limits or {}).get(chat.whatsapp_chat))
            check_summaries(session)
            check_times(session)


def check_numbers(session: ChatSession) -> None:
    """Numbers are given once, from 1, and none is above the counter. Where nothing was
    deleted there are no gaps."""
    messages = session.messages.order_by("order_num")
    numbers = list(messages.values_list("order_num", flat=True))
    assert len(numbers) == len(set(numbers))
    assert not numbers or (numbers[0] >= 1 and numbers[-1] <= session.message_counter)
    assert set(messages.values_list("chat_id", flat=True)) <= {session.chat_id}
    for content, tokens in messages.values_list("content", "tokens"):
        assert tokens == estimate_tokens(content)


def check_no_gaps(session: ChatSession) -> None:
    numbers = session.messages.order_by("order_num").values_list("order_num", flat=True)
    assert list(numbers) == list(range(1, session.message_counter + 1))


def check_window(session: ChatSession, limit: int | None) -> None:
    """The sum is that of the window; it keeps the limit, or holds the last two alone."""
    window = session.messages.filter(order_num__gte=session.window_start)
    total = window.aggregate(total=Sum("tokens"))["total"] or 0
    assert session.total_tokens == total
    said = window.exclude(role="summary")
    assert said.count() >= min(KEEP_LAST, session.messages.exclude(role="summary").count())
    if limit is not None and total > limit:
        assert said.count() <= KEEP_LAST


def check_summaries(session: ChatSession) -> None:
    """The summaries are a chain; each message is summed up at most once, and each one that says
    something, up to the chain's end, exactly once."""
    chain = list(SummarizationMetadata.objects.filter(session=session).order_by("number"))
    if chain:
        first = chain[0].number
        assert [each.number for each in chain] == list(range(first, first + len(chain)))
        assert chain[-1].last_order <= session.summarized_until
    for before, after in zip(chain, chain[1:], strict=False):
        assert before.last_order < after.first_order
    ids = [pk for each in chain for pk in each.summarized_message_ids]
    assert len(ids) == len(set(ids))
    covered = session.messages.filter(order_num__lte=session.summarized_until)
    # Messages that say nothing are passed over without a summary.
    spoken = covered.exclude(role="summary").values_list("pk", "role", "content")
    telling = {pk for pk, role, text in spoken if find_entries([Said(1, Line(role, text))])}
    assert telling <= set(ids)
    for each in chain:
        _check_summary(each)
    assert session.messages.filter(role="summary").count() == len(chain)


def _check_summary(made: SummarizationMetadata) -> None:
    summary = made.summary_message
    assert summary.role == "summary"
    assert summary.session_id == made.session_id
    assert summary.order_num > made.last_order
    assert summary.metadata["summaryMetadataId"] == str(made.summary_metadata_id)
    sources = Message.objects.filter(pk__in=made.summarized_message_ids)
    found = sources.aggregate(count=Count("pk"), last=Max("order_num"))
    if made.sources_deleted:
        assert found["count"] == 0
    else:
        assert found["count"] == len(made.summarized_message_ids)
        assert found["last"] == made.last_order
        assert not sources.exclude(session_id=made.session_id).exists()


def check_times(session: ChatSession) -> None:
    """Only an ended session has an end, and it was last active when its last message came."""
    assert (session.status == "active") == (session.expired_at is None)
    last = session.messages.exclude(role="summary").order_by("-order_num").first()
    if last is not None:
        assert session.last_active == last.received_at
