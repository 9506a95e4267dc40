"""Keep filters of the inbox under a name: one's own, and those that the team shares."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Lower
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from sessions_app.inbox.move_markers import ReviewError
from sessions_app.models import SavedFilter
from sessions_app.models.review import MAX_FILTER_NAME, MAX_FILTER_QUERY

# More would not fit over the list.
MAX_OWN = 20
MAX_SHARED = 20
SHARE = "sessions_app.review_chat"


@dataclass(frozen=True)
class Change:
    """The changes of a saved filter; None: this stays."""

    name: str | None = None
    is_shared: bool | None = None


def filters_for(user: User) -> QuerySet[SavedFilter]:
    """Return the person's own filters and the shared ones, by name."""
    return SavedFilter.objects.filter(Q(user=user) | Q(is_shared=True)).select_related("user")


def filter_save(*, user: User, name: str, query: str, is_shared: bool, actor: Actor) -> SavedFilter:
    """Keep filters under a name. Raises ReviewError."""
    if not query:
        raise ReviewError(_("Set a filter first; words of a search can't be saved."))
    if len(query) > MAX_FILTER_QUERY:
        raise ReviewError(_("These are too many filters."))
    with transaction.atomic():
        _lock(user)
        if SavedFilter.objects.filter(user=user).count() >= MAX_OWN:
            limit = _("You have %(number)s filters: delete one first.")
            raise ReviewError(limit % {"number": MAX_OWN})
        kept = SavedFilter(user=user, name=_name(user, name), query=query)
        if is_shared:
            _share(user, kept)
        kept.save()
        _record("filter.share", kept, actor)
    return kept


def filter_change(*, user: User, filter_id: int, change: Change, actor: Actor) -> SavedFilter:
    """Rename, share or unshare a filter. Raises ReviewError."""
    with transaction.atomic():
        kept = _own(user, filter_id)
        was_shared = kept.is_shared
        if change.name is not None:
            kept.name = _name(kept.user, change.name, besides=kept)
        if change.is_shared is not None:
            kept.is_shared = False
            if change.is_shared:
                _share(user, kept)
        kept.save()
        if was_shared and not kept.is_shared:
            _record("filter.unshare", kept, actor, is_public=True)
        else:
            _record("filter.update" if was_shared else "filter.share", kept, actor)
    return kept


def filter_delete(*, user: User, filter_id: int, actor: Actor) -> str:
    """Delete a filter, and return its name. Raises ReviewError."""
    with transaction.atomic():
        kept = _own(user, filter_id)
        _record("filter.delete", kept, actor)
        kept.delete()
    return kept.name


def may_change(user: User, kept: SavedFilter) -> bool:
    """Return whether a filter is the person's own, or shared and the person may share filters."""
    return kept.user_id == user.pk or (kept.is_shared and user.has_perm(SHARE))


def _own(user: User, filter_id: int) -> SavedFilter:
    found = SavedFilter.objects.select_for_update(of=("self",)).filter(pk=filter_id)
    kept = found.select_related("user").first()
    if kept is None or not may_change(user, kept):
        raise ReviewError(_("That filter isn't there any more, or isn't yours."))
    _lock(kept.user)
    return kept


def _lock(user: User) -> None:
    """Let one request at a time change a person's filters: two at once would pass a limit."""
    User.objects.select_for_update().filter(pk=user.pk).first()


def _name(user: User, name: str, *, besides: SavedFilter | None = None) -> str:
    name = " ".join(name.replace("\x00", "").split())
    if not name:
        raise ReviewError(_("Give the filter a name."))
    if len(name) > MAX_FILTER_NAME:
        limit = _("The name may have %(number)s characters.")
        raise ReviewError(limit % {"number": MAX_FILTER_NAME})
    lowered = SavedFilter.objects.annotate(lowered=Lower("name"))
    same = lowered.filter(user=user, lowered=Lower(Value(name)))
    if besides is not None:
        same = same.exclude(pk=besides.pk)
    if same.exists():
        raise ReviewError(_("There is a filter of this name already."))
    return name


def _share(user: User, kept: SavedFilter) -> None:
    if not user.has_perm(SHARE):
        raise ReviewError(_("You may not share filters with the team."))
    if SavedFilter.objects.filter(is_shared=True).exclude(pk=kept.pk).count() >= MAX_SHARED:
        limit = _("The team has %(number)s filters: delete one first.")
        raise ReviewError(limit % {"number": MAX_SHARED})
    kept.is_shared = True


def _record(action: str, kept: SavedFilter, actor: Actor, *, is_public: bool = False) -> None:
    """Audit what others see of it; one's own filters are nobody else's business."""
    if not (kept.is_shared or is_public):
        return
    audit_record(action=action, actor=actor, object_type="filter", object_id=kept.pk)
