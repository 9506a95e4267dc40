"""The staff's menu: the pages that a person may open, grouped by purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from sessions_app.inbox.presentation import attention_shown

OPERATE = "dashboard.operate_server"


@dataclass(frozen=True)
class Entry:
    """A menu entry: a list of the admin or a page of its own.

    ``model``: "app_label.modelname" of a list. ``page``: the URL name of a page; ``right``: the
    permission that it needs, empty for every staff member. ``count``: returns the number of things
    that need a person there. ``also``: how the names of other pages begin that belong to it.
    """

    icon: str
    model: str = ""
    page: str = ""
    title: Any = ""
    right: str = ""
    count: Callable[[HttpRequest], int] | None = None
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Link:
    """``count``: the number of things that need a person; None where nothing is counted."""

    title: str
    address: str
    icon: str
    here: bool
    count: int | None = None


@dataclass(frozen=True)
class Part:
    """Links of a group below a heading of their own; without a title there is no heading."""

    title: Any
    links: Sequence[Link]


@dataclass(frozen=True)
class Group:
    """An entry of the menu with what it holds. Without a title: a link of its own.

    ``inner``: lists that are seldom needed, folded at its end.
    """

    title: Any
    parts: Sequence[Part]
    inner: Group | None = None

    @property
    def here(self) -> bool:
        inner_here = self.inner is not None and self.inner.here
        return inner_here or any(link.here for part in self.parts for link in part.links)


MENU: tuple[tuple[Any, tuple[Entry, ...]], ...] = (
    ("", (Entry("home", page="admin:index", title=_("Home"), also=("costs",)),)),
    ("", (Entry("forum", model="sessions_app.chat", title=_("Inbox"), count=attention_shown),)),
    ("", (Entry("psychology", model="sessions_app.turn"),)),
    (
        _("Knowledge"),
        (
            Entry("neurology", model="memories_app.memory"),
            Entry(
                "rate_review",
                page="admin:memories_app_memory_waiting",
                title=_("To review"),
                right="memories_app.view_memory",
            ),
            Entry(
                "upload_file",
                page="admin:memories_app_memory_table",
                title=_("Import a table"),
                right="memories_app.add_memory",
            ),
            Entry("rule", model="memories_app.mergeproposal"),
            Entry("description", model="memories_app.sourcedocument"),
            Entry("folder_open", model="memories_app.memorydocument"),
            Entry(
                "support_agent",
                model="sessions_app.assistantprofile",
                title=_("The assistant's profile"),
            ),
        ),
    ),
    (
        "",
        (
            Entry(
                "contacts",
                page="admin:contacts",
                title=_("Contacts"),
                right="sessions_app.view_chat",
            ),
        ),
    ),
    (
        _("Privacy & audit"),
        (
            Entry("delete_forever", model="sessions_app.forgetrun", title=_("Erase data")),
            Entry("receipt_long", model="sessions_app.forgetreceipt"),
            Entry("policy", model="audit.auditevent", title=_("Audit log")),
        ),
    ),
)
# Of those who log in with a password, not by other means.
OWN_ACCOUNT = (
    Entry("password", page="admin:password_change", title=_("Change password")),
    Entry("phonelink_lock", page="admin:two_factor", title=_("Two-factor login")),
)
# The own account stands above them, and the raw tables below the last.
SETTINGS: tuple[tuple[Any, tuple[Entry, ...]], ...] = (
    (
        _("Team"),
        (
            Entry("group", model="auth.user"),
            Entry("groups", model="auth.group"),
            Entry("lock", model="dashboard.failedlogin"),
        ),
    ),
    (
        _("Labels and replies"),
        (
            Entry("label", model="sessions_app.label"),
            Entry("quickreply", model="sessions_app.cannedreply"),
        ),
    ),
    (
        _("Integrations"),
        (
            Entry("key", model="api.apitoken"),
            Entry("webhook", model="hooks.webhookendpoint", title=_("Webhook endpoints")),
            Entry("outbox", model="hooks.webhookdelivery", title=_("Webhook deliveries")),
        ),
    ),
    (
        _("System"),
        (
            Entry(
                "monitor_heart",
                page="admin:operations",
                title=_("Operations"),
                right=OPERATE,
                also=("django_q_",),
            ),
        ),
    ),
)


def navigation(request: HttpRequest, app_list: Iterable[Mapping[str, Any]]) -> list[Group]:
    """Return the menu for a person.

    ``app_list``: the admin's own, with the models that this person may view. Lists that the menu
    doesn't name are raw tables: those who operate the server find them folded under Settings.
    Others come to them by links, and find there only the one that they are reading.
    """
    models = {
        f"{app['app_label']}.{model['object_name'].lower()}": model
        for app in app_list
        for model in app["models"]
        if model.get("admin_url")
    }
    named = {entry.model for _, entries in (*MENU, *SETTINGS) for entry in entries}
    groups = [_group(title, [("", entries)], request, models) for title, entries in MENU]
    unnamed = [Entry("table_rows", model=name) for name in models if name not in named]
    if not request.user.has_perm(OPERATE):
        unnamed = [entry for entry in unnamed if _is_here(request, entry, "")]
    raw = _group(_("Raw tables"), [("", unnamed)], request, models)
    has_password = request.user.is_authenticated and request.user.has_usable_password()
    own = (_("Own account"), OWN_ACCOUNT if has_password else ())
    settings = _group(_("Settings"), (own, *SETTINGS), request, models)
    groups.append(replace(settings, inner=raw))
    return [group for group in groups if group.parts or (group.inner and group.inner.parts)]


def _group(
    title: Any,
    parts: Iterable[tuple[Any, Sequence[Entry]]],
    request: HttpRequest,
    models: Mapping[str, Any],
) -> Group:
    found = (Part(heading, list(_links(request, entries, models))) for heading, entries in parts)
    return Group(title, [part for part in found if part.links])


def _links(
    request: HttpRequest, entries: Iterable[Entry], models: Mapping[str, Any]
) -> Iterator[Link]:
    found = list(_allowed(request, entries, models))
    # A page's address may begin with its list's: only the nearest one is where the reader is.
    nearest = max((link.address for link in found if link.here), key=len, default="")
    for link in found:
        yield replace(link, here=link.here and link.address == nearest)


def _allowed(
    request: HttpRequest, entries: Iterable[Entry], models: Mapping[str, Any]
) -> Iterator[Link]:
    for entry in entries:
        if entry.model:
            model = models.get(entry.model)
            if model is None:
                continue
            address, title = model["admin_url"], entry.title or capfirst(model["name"])
        else:
            if entry.right and not request.user.has_perm(entry.right):
                continue
            address, title = reverse(entry.page), entry.title
        count = entry.count(request) if entry.count else None
        yield Link(str(title), address, entry.icon, _is_here(request, entry, address), count)


def _is_here(request: HttpRequest, entry: Entry, address: str) -> bool:
    """Say whether the page belongs to the entry.

    Pages of a list are known by their names: not all of them have addresses below the list's.
    """
    name = (request.resolver_match.url_name or "") if request.resolver_match else ""
    if name.startswith(entry.also):
        return True
    if entry.model:
        return name.startswith(f"{entry.model.replace('.', '_')}_")
    if entry.page == "admin:index":
        return request.path == address
    return request.path.startswith(address)
