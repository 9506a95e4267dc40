"""The names of memory states on staff's pages, and the filters of the list of memories."""

from collections.abc import Mapping
from datetime import date, datetime, time
from functools import partial
from typing import Any, ClassVar
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memories_app.models import (
    EmbeddingModel,
    EmbeddingState,
    Memory,
    MemoryEmbedding,
    MemoryStatus,
    ProposalMemory,
    ProposalState,
)
from memories_app.visibility import is_current, memories_visible, tags_in_use
from memoryproject.foundation.admin_kit import list_filters
from memoryproject.foundation.tables import read_table
from memoryproject.foundation.text.uuids import uuid_or_none

_WORDS = read_table(__file__, "words.yaml")
STATUSES, VISIBILITIES = _WORDS["statuses"], _WORDS["visibilities"]
PROPOSAL_STATES, PROPOSAL_KINDS = _WORDS["proposal_states"], _WORDS["proposal_kinds"]


def revision_label(value: str) -> str:
    return str(_WORDS["revision_reasons"].get(value, value))


def type_label(value: str) -> str:
    return str(_WORDS["types"].get(value, value))


def doubt_labels(memory: Memory) -> list[str]:
    """Return why the memory waits for staff; a reason of another version as it is stored."""
    reasons = memory.metadata.get("to_review")
    listed = reasons if isinstance(reasons, list) else []
    return [str(_WORDS["doubts"].get(str(reason), reason)) for reason in listed]


def source_label(value: str) -> str:
    return str(_WORDS["sources"].get(value, value)) or "–"


def mark(words: Mapping[str, Any], value: str) -> SafeString:
    """Render a state as a coloured mark with its translated name."""
    colour = _WORDS["colours"].get(value, "")
    return format_html('<span class="state {}">{}</span>', colour, words.get(value, value))


# Filters. None scans a whole table for its choices.


def _states(request: HttpRequest) -> list_filters.Choices:
    """Offer the states; with a day to look at, each shows what was believed then."""
    now, as_of = timezone.now(), day_of(request) is not None

    def choice(label: Any, condition: Q) -> tuple[Any, Q]:
        return label, Q() if as_of else condition

    active = Q(status=MemoryStatus.ACTIVE)
    return {
        "": choice(_("Recalled"), active & is_current(now)),
        "proposed": choice(_("To review"), Q(status=MemoryStatus.PROPOSED)),
        "superseded": choice(_("Superseded"), Q(status=MemoryStatus.SUPERSEDED)),
        "expired": choice(_("Expired"), active & Q(expires_at__lte=now)),
        "all": choice(_("All"), Q()),
    }


def _tags(request: HttpRequest) -> list_filters.Choices:
    chosen = request.GET.get("tag", "")
    tags = sorted({*tags_in_use(), *([chosen] if chosen else [])})
    return {tag: (tag, Q(tags__contains=[tag])) for tag in tags}


def _without_vector(memories: QuerySet[Memory]) -> QuerySet[Memory]:
    """Narrow to those without a vector of the active model: only lexical search finds them."""
    in_use = EmbeddingModel.objects.filter(state=EmbeddingState.ACTIVE).first()
    name = in_use.model_id if in_use else ""
    vectors = MemoryEmbedding.objects.filter(memory=OuterRef("pk"), model=name)
    # Query all memories, not only the shown ones: the database then compares two indexes and
    # doesn't read every memory.
    missing = Memory.objects.filter(~Exists(vectors))
    return memories.filter(pk__in=missing.values("pk"))


def _undecided(memories: QuerySet[Memory]) -> QuerySet[Memory]:
    in_proposals = ProposalMemory.objects.filter(proposal__state=ProposalState.OPEN)
    return memories.filter(pk__in=in_proposals.values("memory"))


_in_use = partial(list_filters.used_value_filter, Memory)
STATE_FILTER = list_filters.choice_filter("state", _("state"), _states)
PENDING_FILTER = list_filters.choice_filter(
    "pending", _("to decide"), {"yes": (_("Duplicates and contradictions"), _undecided)}
)
TYPE_FILTER = _in_use("type", _("type"), type_label)
CATEGORY_FILTER = _in_use("category", _("category"))
TAG_FILTER = list_filters.choice_filter("tag", _("tag"), _tags)
SOURCE_FILTER = _in_use("source", _("source"), source_label)
VECTOR_FILTER = list_filters.choice_filter(
    "vector", _("vector"), {"none": (_("Has none: found by its words only"), _without_vector)}
)
AS_OF = "as_of"
TYPED = "admin/memories_app/memory/typed_filter.html"


def day_of(request: HttpRequest) -> datetime | None:
    """Return the end of the day as of which the list is wanted, there where the business is."""
    try:
        day = date.fromisoformat(request.GET.get(AS_OF, ""))
        return datetime.combine(day, time.max, ZoneInfo(settings.BUSINESS_TIME_ZONE))
    except (ValueError, OverflowError):
        return None


class AsOfFilter(list_filters.TypedFilter):
    """Show what was believed on a day: said by then, valid then, and not yet replaced."""

    title = _("believed on")
    labels: ClassVar[Any] = {AS_OF: _("Day")}
    kind = "date"
    template = TYPED

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        at = day_of(request)
        if at is None:
            return queryset
        then = memories_visible(is_owner=False, is_staff=True, chat_id=None, as_of=at)
        return queryset.filter(pk__in=then.exclude(valid_until__lt=at).order_by().values("pk"))


class ChatFilter(list_filters.TypedFilter):
    """Filter by a person, whose name or number is typed: there may be ten thousand."""

    title = _("person")
    labels: ClassVar[Any] = {"chat": _("Name or number")}
    template = TYPED

    def shown(self, name: str) -> str:
        """Return what was typed; the name of the person whom a row's link chose."""
        value = self.typed.get(name, "")
        key = uuid_or_none(value)
        names: dict[UUID, str] = self.model_admin.chat_names({key}) if key else {}
        return names.get(key, value) if key else value

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        name = self.typed.get("chat", "")
        if not name:
            return queryset
        found = self.model_admin.find_chats(name) if "\x00" not in name else []
        return queryset.filter(chat_id__in=found)
