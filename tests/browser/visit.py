"""A page, and what went wrong on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Request, Response

# Widths and colour schemes; every page is seen wide and light, and narrow and dark anyway.
OTHER_SCREENS = [(1280, "dark"), (390, "light")]


@dataclass
class Visit:
    """``errors`` are the console's, ``failed`` the requests that were refused, ``foreign``
    the addresses on other hosts that were asked for."""

    page: Page
    url: str
    errors: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._request)
        self.page.on("response", self._response)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.foreign.append(request.url)

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.failed.append(f"{response.status} {response.url}")

    def troubles(self) -> list[str]:
        return [*self.errors, *self.failed, *self.foreign]


def is_scrolled_sideways(page: Page) -> bool:
    """Whether the page as a whole is wider than the window."""
    return bool(
        page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    )


def style(page: Page, selector: str, name: str) -> str:
    """A property of the first such element, as the browser computed it."""
    value = page.locator(selector).first.evaluate(
        "(element, name) => getComputedStyle(element)[name]", name
    )
    return str(value)


def serious(page: Page) -> list[str]:
    """What axe-core finds that keeps people from using the page, and where."""
    # All that it finds right would be told, too, node by node.
    outcome = Axe().run(page, options={"resultTypes": ["violations"]})
    found: list[Any] = outcome.response["violations"]
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:3]
    ]
