"""The pages of memories and proposals, with the parts that need the embedder and the chats."""

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin
from django.db.models import Case, F, FloatField, Q, QuerySet, Value, When
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _, gettext_lazy

from memories_app.errors import MemoryOperationError
from memories_app.models import Memory, MergeProposal, Visibility
from memories_app.review import presentation as review
from memoryproject.foundation.admin_kit.display import shown_link
from memoryproject.foundation.audit.audit_events import staff_read_record
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.retrieval.query import with_words
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.conversations.chat_queries import chat_at, with_name
from sessions_app.conversations.epochs import ChatGoneError, chats_keep
from sessions_app.embedding.facade import embedder
from sessions_app.forgetting.presentation import ForgetAction
from sessions_app.memories.presentation import MemoryTransfer
from sessions_app.memories.table_pages import TableImportPages
from sessions_app.models import Chat, Message, Turn, TurnReplay
from sessions_app.presentation.links import chat_gone_text, contact_address, contact_typed
from sessions_app.promises.pages import PromisePages
from sessions_app.recall.facade import MEMORIES, Hit, Viewer, recall
from sessions_app.turns.presentation import answers_waiting

SEE_ANSWERS = [f"sessions_app.view_{name}" for name in ("turn", "chat", "message")]


@admin.register(Memory)
class MemoryAdmin(ForgetAction, PromisePages, TableImportPages, MemoryTransfer, review.MemoryPages):
    actions = (*review.MemoryPages.actions, "export_selected", "forget_selected")
    unbounded_actions = ("export_selected", "forget_selected")
    search_help_text = gettext_lazy("By meaning and words; or an id, or a chat's address")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Sort by relevance unless another order is requested."""
        found, note = search_memories(request, queryset, search_term, self.embedder())
        page: Any = request
        page.memory_search = note
        return found.order_by(*queryset.query.order_by) if "o" in request.GET else found, False

    def get_list_display(self, request: HttpRequest) -> Any:
        """Show the score of search results."""
        first, *others = super().get_list_display(request)
        if not request.GET.get("q"):
            return (first, *others)
        return (first, "shown_score", *others)

    @admin.display(description=gettext_lazy("score, similarity"))
    def shown_score(self, memory: Any) -> str:
        """Mark memories that would be recalled for a turn."""
        if memory.score is None:
            return "–"
        relevant = memory.score >= settings.RECALL_MIN_SIMILARITY
        label = _("would be recalled") if relevant else _("too weak to be recalled")
        similarity = "–" if memory.similarity is None else f"{memory.similarity:.2f}"
        return format_html(
            '<span class="score{}">{}</span> <span class="quiet">{}</span>'
            '<span class="{}"> {}</span>',
            " relevant" if relevant else "",
            f"{memory.score:.2f}",
            similarity,
            "sr-only" if relevant else "quiet too-weak",
            label,
        )

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        can_export = self.has_export_permission(request)
        return {**super().list_context(request), "can_export": can_export}

    def embedder(self) -> Embedder:
        return embedder()

    def find_chat(self, named: str) -> UUID | None:
        chat = contact_typed(named)
        return None if chat is None else chat.pk

    def keep_chat(self, chat_id: UUID) -> None:
        try:
            chats_keep([chat_id])
        except ChatGoneError:
            raise MemoryOperationError(chat_gone_text()) from None

    def keep_source(self, memory: Memory) -> None:
        """Refuse what was erased since, and keep the chat until the transaction ends."""
        if memory.chat_id is not None:
            self.keep_chat(memory.chat_id)
        source = memory.source_message_id
        if source and not Message.objects.filter(pk=source, revoked_at=None).exists():
            raise MemoryOperationError(chat_gone_text())

    def find_chats(self, text: str) -> list[UUID]:
        return chats_called(text)

    def chat_link(self, chat_id: UUID) -> str:
        chat = Chat.objects.filter(pk=chat_id).first()
        if chat is None:
            return str(chat_id)
        return shown_link(contact_address(chat.pk), str(chat))

    def chat_names(self, chat_ids: set[UUID]) -> dict[UUID, str]:
        return {chat.pk: str(chat) for chat in _chats(chat_ids)}

    def chat_short_names(self, chat_ids: set[UUID]) -> dict[UUID, str]:
        return _short_names(chat_ids)

    def source_places(self, request: HttpRequest, message_ids: set[UUID]) -> dict[UUID, str]:
        """Return the links of existing messages, each in its chat."""
        if not message_ids or not request.user.has_perm("sessions_app.view_message"):
            return {}
        found = Message.objects.filter(pk__in=message_ids).values_list("pk", "chat_id")
        return {
            pk: f"{reverse('admin:sessions_app_chat_conversation', args=[chat_id])}?at={pk}#m-{pk}"
            for pk, chat_id in found
        }

    def source_texts(self, request: HttpRequest, places: Mapping[UUID, str]) -> dict[UUID, str]:
        """Return what stands in these messages; there are places only for who may read them."""
        texts = dict(Message.objects.filter(pk__in=places).values_list("pk", "content"))
        if texts:
            staff_read_record(request, list="message", searched=False)
        return texts

    def also_waiting(self, request: HttpRequest) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if request.user.has_perm("memories_app.view_mergeproposal"):
            found["proposals"] = review.proposals_waiting(
                review.WAITING_AT_ONCE, self.chat_short_names
            )
        if request.user.has_perms(SEE_ANSWERS):
            staff_read_record(request, list="turn", searched=False)
            found["answers"] = answers_waiting(review.WAITING_AT_ONCE)
            found["may_rate"] = request.user.has_perm("sessions_app.review_chat")
        return found

    def recalled_lately(self, request: HttpRequest, memory: Memory) -> list[dict[str, Any]]:
        if not request.user.has_perm("sessions_app.view_turn"):
            return []
        of_chat = memory.visibility == str(Visibility.CHAT)
        return answers_that_recalled(memory.pk, memory.chat_id if of_chat else None)


@admin.register(MergeProposal)
class MergeProposalAdmin(review.ProposalPages):
    def embedder(self) -> Embedder:
        return embedder()

    def chat_short_names(self, chat_ids: set[UUID]) -> dict[UUID, str]:
        return _short_names(chat_ids)


# The messages that memories come from, and the answers that recalled them.


# Only so many of the newest answers are searched for those that recalled a memory.
ANSWERS_LOOKED_AT = 500
ANSWERS_SHOWN = 10
# A name finds the memories of so many people, those who wrote last.
MAX_CHATS = 50
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w.]{1,64}")
# The number of a title such as "Dana Levi (+972 55-010-0101)", whose parts may be isolated.
_NUMBER = re.compile(r"\([\u2066-\u2069]*(\+[\d -]{7,24})[\u2066-\u2069]*\)$")


def _chats(chat_ids: Collection[UUID]) -> Iterable[Chat]:
    return Chat.objects.filter(pk__in=chat_ids) if chat_ids else ()


def _short_names(chat_ids: Collection[UUID]) -> dict[UUID, str]:
    return {chat.pk: chat.shown_name for chat in _chats(chat_ids)}


def chats_called(text: str) -> list[UUID]:
    """Return the ids of the chats with this id or address, or with this part of a name or number.

    A title such as ``chat_names`` gives counts as the address or number in it. The ids are values,
    so that the query for their memories uses an index.
    """
    with suppress(ValueError):
        return [UUID(text)]
    if address := _ADDRESS.search(text):
        exact = chat_at(address[0])
        return [] if exact is None else [exact.pk]
    number = _NUMBER.search(text)
    found = Chat.objects.filter(with_name(number[1] if number else text)).order_by("-updated_at")
    return list(found.values_list("pk", flat=True)[:MAX_CHATS])


def answers_that_recalled(memory_id: UUID, chat_id: UUID | None) -> list[dict[str, Any]]:
    """Return the newest answers for which the memory was recalled, each with its score then.

    Only the newest answers are searched, and only those of the memory's chat if it is visible
    to that chat alone.
    """
    turns = Turn.objects.order_by("-id")
    if chat_id is not None:
        turns = turns.filter(chat=chat_id)
    newest = turns.values("id")[:ANSWERS_LOOKED_AT]
    found = (
        TurnReplay.objects.filter(turn__in=newest, recalled__contains=[{"id": str(memory_id)}])
        .order_by("-turn_id")
        .defer("prompt", "shown", "left_out", "timings")
        .select_related("turn__chat")[:ANSWERS_SHOWN]
    )
    return [
        {
            "address": reverse("admin:sessions_app_turn_change", args=[replay.pk]),
            "at": replay.turn.asked_at,
            "chat": str(replay.turn.chat),
            "score": _score(replay.recalled, str(memory_id)),
        }
        for replay in found
    ]


def _score(recalled: list[dict[str, Any]], memory_id: str) -> float | None:
    return next((each.get("score") for each in recalled if each.get("id") == memory_id), None)


# The search box of the list of memories: recall with the visibility of staff.

MAX_HITS = 100
# Lower scores are chance; a turn recalls from RECALL_MIN_SIMILARITY on.
MIN_SCORE = 0.15
# So many are shown however low their scores are: the nearest that there is says something, too.
NEAREST = 5
MAX_LENGTH = 2_000
# Partial words are searched in so many of the newest memories.
RECENT = 5_000
_ID_BEGINS = re.compile("[0-9a-f]{8,32}")
# Parameters of the list's address that are no filters.
_NOT_FILTERS = {"q", "p", "o", "e", "all"}


@dataclass(frozen=True)
class SearchNote:
    """The remarks of the page about a search.

    ``by_meaning``: recall was used, so there are scores. ``degraded``: a part of recall failed.
    ``by_words``: memories that aren't recalled were searched, too, by their words. ``in_part``:
    nothing matched, and these of the newest memories contain the text as a part of a word.
    ``only_near``: nothing matched, and these are the nearest.
    """

    by_meaning: bool = False
    degraded: bool = False
    by_words: bool = False
    in_part: bool = False
    only_near: bool = False


def search_memories(
    request: HttpRequest, queryset: QuerySet[Memory], term: str, embedder: Embedder
) -> tuple[QuerySet[Any], SearchNote]:
    """Return the matching rows, best first, with ``score`` and ``similarity`` if recalled.

    A whole id, or the beginning of a memory's id or a chat's address, finds its memories.
    """
    term = term.replace("\x00", " ").strip()[:MAX_LENGTH]
    if not term:
        return _scored(queryset, []), SearchNote()
    if (key := uuid_or_none(term)) is not None:
        by_id = Q(pk=key) | Q(chat_id=key) | Q(source_message_id=key)
        return _scored(queryset.filter(by_id), []), SearchNote()
    if (began := _id_began(queryset, term)) is not None:
        return _scored(began, []), SearchNote()
    if "@" in term and " " not in term:
        chat = chat_at(term)
        found = queryset.none() if chat is None else queryset.filter(chat_id=chat.pk)
        return _scored(found, []), SearchNote()
    state = request.GET.get("state", "")
    hits, degraded = (
        ([], False) if state in _UNRECALLED else _recalled(request, queryset, term, embedder)
    )
    if _means_all(request):
        hits = [hit for hit in hits if hit.score >= MIN_SCORE]
    found = Q(pk__in=[hit.id for hit in hits if hit.score >= MIN_SCORE])
    if state:
        found |= Q(pk__in=with_words(queryset.order_by(), term).values("pk"))
    note = SearchNote(by_meaning=state not in _UNRECALLED, degraded=degraded, by_words=bool(state))
    if not queryset.filter(found).order_by().exists():
        part = queryset.filter(_in_part(queryset, term))
        if not hits or part.order_by().exists():
            return _scored(part, []), SearchNote(degraded=degraded, in_part=True)
        note = replace(note, only_near=True)
    return _scored(queryset.filter(found | Q(pk__in=[hit.id for hit in hits])), hits), note


def _means_all(request: HttpRequest) -> bool:
    """Say whether something is done with all that was found, without looking at each row.

    That isn't done with memories that are shown only because they are the nearest.
    """
    ticked = bool(request.POST.getlist("_selected_action"))
    return request.method == "POST" and (not ticked or request.POST.get("select_across") == "1")


def _id_began(queryset: QuerySet[Memory], term: str) -> QuerySet[Memory] | None:
    """Return the memories whose id begins with the text; people see such ids on WhatsApp.

    Return None if the text is no beginning of an id, or there is no such memory.
    """
    digits = term.replace("-", "").lower()
    if not _ID_BEGINS.fullmatch(digits):
        return None
    first, last = (UUID(digits.ljust(32, fill)) for fill in "0f")
    found = queryset.filter(pk__range=(first, last))
    return found if found.order_by().exists() else None


def _in_part(queryset: QuerySet[Memory], term: str) -> Q:
    """Return a filter for the newest memories that contain this text; no index can find it."""
    newest = queryset.order_by("-created_at").values("pk")[:RECENT]
    return Q(pk__in=newest, content__icontains=term)


# Filters that exclude everything that recall would find.
_UNRECALLED = {"proposed", "superseded", "expired"}


def _recalled(
    request: HttpRequest, queryset: QuerySet[Memory], term: str, embedder: Embedder
) -> tuple[list[Hit], bool]:
    narrowed = set(request.GET) - _NOT_FILTERS - {"state"}
    result = recall(
        query=term,
        viewer=Viewer("staff"),
        embedder=embedder,
        top_k=MAX_HITS,
        min_similarity=0.0,
        sources=(MEMORIES,),
        memories_where=Q(pk__in=queryset.order_by().values("pk")) if narrowed else None,
        # The user waits for the page, and results below this score are not relevant.
        repeats=True,
        as_of=review.day_of(request),
    )
    hits = [
        hit for place, hit in enumerate(result.hits) if place < NEAREST or hit.score >= MIN_SCORE
    ]
    return hits, result.degraded


def _scored(queryset: QuerySet[Memory], hits: list[Hit]) -> QuerySet[Any]:
    """Sort by score; rows without a score come last, in the list's own order."""
    scores = [When(pk=hit.id, then=Value(hit.score)) for hit in hits]
    cosines = [
        When(pk=hit.id, then=Value(hit.similarity)) for hit in hits if hit.similarity is not None
    ]
    scored = queryset.annotate(
        score=Case(*scores, output_field=FloatField()),
        similarity=Case(*cosines, output_field=FloatField()),
    )
    if not hits:
        return scored
    return scored.order_by(F("score").desc(nulls_last=True), "-created_at", "memory_id")
