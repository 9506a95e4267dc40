"""Forms of the staff's pages as a browser holds them."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from django.test import Client

Values = dict[str, list[str]]


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Values] = []
        self._select: tuple[str, bool] = ("", False)
        self._area = ""
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name, value = given.get("name") or "", given.get("value")
        if tag == "form":
            self.found.append({})
        elif tag == "input":
            self._input(name, value, given)
        elif tag == "select":
            self._select = (name, "multiple" in given)
        elif tag == "option" and self._select[0]:
            self._option(value or "", is_selected="selected" in given)
        elif tag == "textarea":
            self._area, self._text = name, ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = ("", False)
        elif tag == "textarea" and self._area:
            # A browser drops the first line end, and sends the others in the network's form.
            lines = self._text.replace("\r\n", "\n").removeprefix("\n")
            self._put(self._area, lines.replace("\n", "\r\n"))
            self._area = ""

    def _input(self, name: str, value: str | None, given: dict[str, str | None]) -> None:
        kind = given.get("type")
        is_box = kind in ("checkbox", "radio")
        if not name or "disabled" in given or kind in ("submit", "file"):
            return
        if not is_box or "checked" in given:
            self._put(name, value or ("on" if is_box else ""))

    def _option(self, value: str, *, is_selected: bool) -> None:
        name, takes_many = self._select
        if takes_many:
            if is_selected:
                self._put(name, value)
        elif is_selected or name not in self.found[-1]:
            self.found[-1][name] = [value]

    def _put(self, name: str, value: str) -> None:
        if self.found:
            self.found[-1].setdefault(name, []).append(value)


def stamped_form(page: str, index: int = 0) -> Values:
    """What a browser would post of the page's form that carries a stamp."""
    reader = _Forms()
    reader.feed(page)
    return [form for form in reader.found if "seen" in form][index]


def opened(client: Client, address: str) -> Values:
    return stamped_form(client.get(address).content.decode())


def stamp_on(client: Client, address: str) -> str:
    """The stamp of a form that is opened now; none where it can't be opened to be changed."""
    page: Any = client.get(address)
    try:
        return stamped_form(page.content.decode())["seen"][0]
    except IndexError:
        return ""


def save(client: Client, address: str, values: Any, **more: Any) -> Any:
    """Post these values as of a form that was opened just now."""
    return client.post(address, {"seen": stamp_on(client, address), **values}, **more)
