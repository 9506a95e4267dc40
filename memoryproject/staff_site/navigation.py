"""The staff's menu: the pages that a person may open, grouped by purpose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Entry:
    """A menu entry: a list of the admin or a page of its own.

    ``model``: "app_label.modelname" of a list. ``page``: the URL name of a page; ``right``: the
    permission that it needs, empty for every staff member.
    """

    icon: str
    model: str = ""
    page: str = ""
    title: Any = ""
    right: str = ""


@dataclass(frozen=True)
class Link:
    title: str
    address: str
    icon: str
    here: bool


@dataclass(frozen=True)
class Group:
    """A group of entries. ``folded``: closed until the reader opens it."""

    title: Any
    links: Sequence[Link]
    folded: bool = False

    @property
    def here(self) -> bool:
        return any(link.here for link in self.links)


MENU: tuple[tuple[Any, tuple[Entry, ...]], ...] = (
    ("", (Entry("space_dashboard", page="admin:index", title=_("Dashboard")),)),
    (
        _("Conversations"),
        (
            Entry("forum", model="sessions_app.chat", title=_("Inbox")),
            Entry("history", model="sessions_app.chatsession"),
            Entry("chat", model="sessions_app.message"),
            Entry("psychology", model="sessions_app.turn"),
            Entry("summarize", model="sessions_app.summarizationmetadata"),
        ),
    ),
    (
        _("Memory"),
        (
            Entry("neurology", model="memories_app.memory"),
            Entry("rule", model="memories_app.mergeproposal"),
            Entry("description", model="memories_app.sourcedocument"),
            Entry("folder_open", model="memories_app.memorydocument"),
            Entry("id_card", model="cards_app.memorycard"),
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
    (
        _("Administration"),
        (
            Entry(
                "monitor_heart",
                page="admin:operations",
                title=_("Operations"),
                right="dashboard.operate_server",
            ),
            Entry(
                "support_agent",
                model="sessions_app.assistantprofile",
                title=_("The assistant's profile"),
            ),
            Entry("key", model="api.apitoken"),
            Entry("webhook", model="hooks.webhookendpoint", title=_("Webhook endpoints")),
            Entry("outbox", model="hooks.webhookdelivery", title=_("Webhook deliveries")),
            Entry("group", model="auth.user"),
            Entry("groups", model="auth.group"),
            Entry("lock", model="dashboard.failedlogin"),
        ),
    ),
)


def navigation(request: HttpRequest, app_list: Iterable[Mapping[str, Any]]) -> list[Group]:
    """Return the menu for a person.

    ``app_list``: the admin's own, with the models that this person may view. Lists that MENU
    doesn't name come last, so that every registered list can be reached.
    """
    models = {
        f"{app['app_label']}.{model['object_name'].lower()}": model
        for app in app_list
        for model in app["models"]
        if model.get("admin_url")
    }
    named = {entry.model for _, entries in MENU for entry in entries}
    groups = [Group(title, list(_links(request, entries, models))) for title, entries in MENU]
    rest = [Entry("table_rows", model=name) for name in models if name not in named]
    groups.append(Group(_("More"), list(_links(request, rest, models)), folded=True))
    return [group for group in groups if group.links]


def _links(
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
        yield Link(str(title), address, entry.icon, _is_here(request, entry, address))


def _is_here(request: HttpRequest, entry: Entry, address: str) -> bool:
    if entry.page == "admin:index":
        return request.path == address
    return request.path.startswith(address)
