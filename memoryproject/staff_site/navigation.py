"""The staff's menu: the pages that a person may open, grouped by purpose."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.tables import read_table
from sessions_app.inbox.inbox_list import waiting_shown
from sessions_app.promises.pages import promises_due


@dataclass(frozen=True)
class Entry:
    """A menu entry: a list of the admin or a page of its own.

    ``name``: "app_label.modelname" of a list, or the URL name of a page. ``right``: the permission
    that a page needs, empty for every staff member. ``count``: returns the number of things that
    need a person there. ``also``: how the names of other pages begin that belong to it.
    """

    icon: str
    name: str
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
class Group:
    """An entry of the menu with what it holds. Without a title: a link of its own.

    ``parts``: links, each below a heading of their own, or below none.
    """

    title: Any
    parts: Sequence[tuple[Any, Sequence[Link]]]

    @property
    def here(self) -> bool:
        return any(link.here for _title, links in self.parts for link in links)


def queue_rows(request: HttpRequest) -> int:
    return waiting_shown(request).total


Entries = tuple[Entry, ...]
COUNTS = {"sessions_app.chat": queue_rows, "memories_app_memory_promises": promises_due}
_TABLE = read_table(__file__, "menu.yaml")


def _entry(row: dict[str, Any]) -> Entry:
    also = tuple(row.get("also", ()))
    return Entry(**{**row, "count": COUNTS.get(row["name"]), "also": also})


def _groups(name: str) -> tuple[tuple[Any, Entries], ...]:
    return tuple((each["title"], tuple(map(_entry, each["entries"]))) for each in _TABLE[name])


MENU, SETTINGS = _groups("menu"), _groups("settings")
NOTIFICATIONS = _entry(_TABLE["notifications"])
OWN_ACCOUNT = tuple(map(_entry, _TABLE["own_account"]))


def navigation(request: HttpRequest, app_list: Iterable[Mapping[str, Any]]) -> list[Group]:
    """Return the menu for a person.

    ``app_list``: the admin's own, with the models that this person may view.
    """
    models = _models(app_list)
    # Operations has the links to them.
    raw = tuple(f"{name.replace('.', '_')}_" for name in models.keys() - _named())
    has_password = request.user.is_authenticated and request.user.has_usable_password()
    own = (*(OWN_ACCOUNT if has_password else ()), NOTIFICATIONS)
    settings = [(_("Own account"), own), *SETTINGS]
    groups: list[tuple[Any, Any]] = [(title, [("", entries)]) for title, entries in MENU]
    found = []
    for title, parts in [*groups, (_("Settings"), settings)]:
        linked = [(heading, _links(request, entries, models, raw)) for heading, entries in parts]
        found.append(Group(title, [part for part in linked if part[1]]))
    return [each for each in found if each.parts]


def raw_tables(app_list: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the names and addresses of the lists that the menu doesn't name.

    Those who operate the server find them on *Operations*, others by links.
    """
    named = _named()
    return [
        (capfirst(model["name"]), model["admin_url"])
        for name, model in _models(app_list).items()
        if name not in named
    ]


def _named() -> set[str]:
    return {entry.name for _title, entries in (*MENU, *SETTINGS) for entry in entries}


def _models(app_list: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {
        f"{app['app_label']}.{model['object_name'].lower()}": model
        for app in app_list
        for model in app["models"]
        if model.get("admin_url")
    }


def _links(
    request: HttpRequest, entries: Iterable[Entry], models: Mapping[str, Any], raw: tuple[str, ...]
) -> list[Link]:
    """Return the links to those of the entries that the person may open.

    ``raw``: how the names of the pages of raw tables begin.
    """
    found = []
    for entry in entries:
        if "." in entry.name:
            if (model := models.get(entry.name)) is None:
                continue
            address, title = model["admin_url"], entry.title or capfirst(model["name"])
        elif not request.user.has_perms(entry.right.split()):
            continue
        else:
            address, title = reverse(f"admin:{entry.name}"), entry.title
        count = entry.count(request) if entry.count else None
        also = (*entry.also, *raw) if entry.name == "operations" else entry.also
        here = _is_here(request, replace(entry, also=also), address)
        found.append(Link(str(title), address, entry.icon, here, count))
    # A page's address may begin with its list's: only the nearest one is where the reader is.
    nearest = max((link.address for link in found if link.here), key=len, default="")
    return [replace(link, here=link.here and link.address == nearest) for link in found]


def _is_here(request: HttpRequest, entry: Entry, address: str) -> bool:
    """Say whether the page belongs to the entry.

    Pages of a list are known by their names: not all of them have addresses below the list's.
    """
    name = (request.resolver_match.url_name or "") if request.resolver_match else ""
    if name.startswith(entry.also):
        return True
    if "." in entry.name:
        return name.startswith(f"{entry.name.replace('.', '_')}_")
    if entry.name == "index":
        return request.path == address
    return request.path.startswith(address)
