"""Finds the staff's pages by itself: the admin's addresses, filled with records that there are, and
what their pages lead to: filters, further pages, orders, searches. A page that is new is found."""

from __future__ import annotations

import gzip
import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.staticfiles import finders
from django.db.models import Model
from django.urls import Resolver404, URLPattern, URLResolver, get_resolver, resolve
from staff_texts import COMMON, HEBREW_WORD, NOTHING, RARE

WORDS = {"common": COMMON, "rare": RARE, "Hebrew": HEBREW_WORD, "nothing": NOTHING}
# These change something, are no pages, or hand everything out.
LEFT_OUT = re.compile(r"log(in|out)|jsi18n|autocomplete|export|language|password|2fa|totp|otp")
ARGUMENT = re.compile(r"<(?:(\w+):)?(\w+)>")
# Of a filter with many values, so many; of all pages of a list the second and the last.
MAX_VALUES = 6
STATIC = f"/{settings.STATIC_URL.strip('/')}/"
PAGE, ORDER = "p", "o"
# Samples of a model's records: what is special about them, and their keys.
Samples = Callable[[type[Model]], dict[str, Any]]


@dataclass(frozen=True)
class Page:
    """``name`` is for people: the view, what is special about the record, what is asked."""

    name: str
    address: str


@dataclass
class Form:
    action: str
    method: str
    kept: list[tuple[str, str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    choices: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


class Parts(HTMLParser):
    """The links and forms of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.scripts: list[str] = []
        self.forms: list[Form] = []
        self._form: Form | None = None
        self._select = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "script" and given.get("src"):
            self.scripts.append(given["src"])
        elif tag == "form":
            self._form = Form(given.get("action", ""), given.get("method", "get").lower())
            self.forms.append(self._form)
        elif self._form is not None and given.get("name") and tag in ("input", "select"):
            self._add(self._form, tag, given)
        elif tag == "option" and self._form is not None and self._select and given.get("value"):
            self._form.choices[self._select].append(given["value"])

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag == "select":
            self._select = ""

    def _add(self, form: Form, tag: str, given: dict[str, str]) -> None:
        name, kind = given["name"], given.get("type", "text")
        if tag == "select":
            self._select = name
        elif kind == "hidden":
            form.kept.append((name, given.get("value", "")))
        elif kind in ("text", "search"):
            form.texts.append(name)
        elif kind in ("date", "datetime-local"):
            form.dates.append(name)
        elif kind in ("radio", "checkbox"):
            form.choices[name].append(given.get("value", "on"))


def pages_by_address(samples: Samples) -> Iterator[Page]:
    """Every address of the admin that can be filled."""
    for route, name in _routes(get_resolver().url_patterns, ""):
        if not route.startswith("admin/") or LEFT_OUT.search(route) or "(?P" in route:
            continue
        arguments = ARGUMENT.findall(route)
        if not arguments:
            yield Page(name, f"/{route}")
        elif len(arguments) == 1:
            ((_, argument),) = arguments
            for label, key in _keys(route, argument, samples):
                address = "/" + ARGUMENT.sub(lambda _, key=key: quote(str(key)), route)
                if _leads_to(address):
                    yield Page(f"{name} {label}".strip(), address)


def _routes(patterns: Iterable[Any], before: str) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern) and pattern.name:
            yield route, pattern.name


def _keys(route: str, argument: str, samples: Samples) -> list[tuple[str, Any]]:
    """Of the records that an argument means: by its name, else those of the list it stands
    under."""
    models = {model._meta.label_lower.replace(".", "/"): model for model in admin.site._registry}
    here = next((models[path] for path in models if route.startswith(f"admin/{path}/")), None)
    for model in ([here] if here else []) + list(models.values()):
        names = {each.name for each in model._meta.concrete_fields if each.unique}
        if argument in names:
            rows = model._default_manager.filter(pk__in=samples(model).values())
            values = dict(rows.values_list("pk", argument))
            return [(label, values.get(key)) for label, key in samples(model).items()]
        if argument == f"{model._meta.model_name}_id":
            return list(samples(model).items())
    return list(samples(here).items()) if here else []


def _leads_to(address: str) -> bool:
    try:
        resolve(address)
    except Resolver404:
        return False
    return True


def pages_from(page: Page, text: str, seen: set[str], a_day: str) -> Iterator[Page]:
    """What a page leads to: itself, asked otherwise, and views that nothing led to before."""
    parts = Parts(text)
    path, asked = urlsplit(page.address).path, urlsplit(page.address).query
    if asked:
        return
    queries: dict[str, list[str]] = defaultdict(list)
    for link in parts.links:
        url = urlsplit(urljoin(page.address, link))
        if url.netloc or not url.path.startswith("/admin/") or LEFT_OUT.search(url.path):
            continue
        if url.path != path:
            yield from _elsewhere(url.path, url.query, seen)
        elif url.query:
            for key in {key for key, _ in parse_qsl(url.query)}:
                queries[key].append(url.query)
    for key, found in queries.items():
        for query in _chosen(key, list(dict.fromkeys(found))):
            yield Page(f"{page.name} ?{query}", f"{path}?{query}")
    for form in parts.forms:
        if form.method == "get" and urlsplit(urljoin(page.address, form.action)).path == path:
            yield from _asked(page.name, path, form, a_day)


def _elsewhere(path: str, query: str, seen: set[str]) -> Iterator[Page]:
    try:
        name = resolve(path).view_name
    except Resolver404:
        return
    if name not in seen:
        seen.add(name)
        yield Page(name, f"{path}?{query}" if query else path)


def _chosen(key: str, queries: list[str]) -> list[str]:
    if key != PAGE:
        # The orders of a list are as many as it has columns.
        return queries[: MAX_VALUES * 2 if key == ORDER else MAX_VALUES]
    numbered = {int(value): q for q in queries if (value := dict(parse_qsl(q))[PAGE]).isdigit()}
    return [numbered[number] for number in sorted({min(numbered), max(numbered)})]


def _asked(name: str, path: str, form: Form, a_day: str) -> Iterator[Page]:
    """A form, one of its fields at a time."""
    kept = [pair for pair in form.kept if pair[1]]
    tries = [(each, word, label) for each in form.texts for label, word in WORDS.items()]
    tries += [(each, a_day, "a day") for each in form.dates]
    for each, values in form.choices.items():
        tries += [(each, value, value) for value in values[:MAX_VALUES]]
    for each, value, label in tries:
        query = urlencode([*kept, (each, value)])
        yield Page(f"{name} {each}={label}", f"{path}?{query}")


def script_bytes(text: str) -> int:
    """How much JavaScript a page loads, as gzip. Scripts that views make are left out: there is one
    of 3 kB, with the texts of Django's calendar."""
    return sum(_compressed(each) for each in Parts(text).scripts if each.startswith(STATIC))


@lru_cache
def _compressed(address: str) -> int:
    found = finders.find(urlsplit(address).path.removeprefix(STATIC))
    return len(gzip.compress(Path(str(found)).read_bytes(), 6))


def is_key(value: str) -> bool:
    """Whether a part of an address is a record's."""
    try:
        uuid.UUID(value)
    except ValueError:
        return value.isdigit()
    return True
