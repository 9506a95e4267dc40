"""A page, and what went wrong on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, Request, Response
from pytest_django.live_server_helper import LiveServer

# Widths and colour schemes: each once, because a layout isn't of a scheme's. Axe sees every page
# wide and light, and narrow and dark anyway.
SCREENS = ((1280, "dark"), (390, "light"))

# Milliseconds for what a page finds out by itself, on a machine that is busy with other tests.
SOON = 60_000

# A list's row of two lines is at most as high.
TWO_LINES = 76
ROW = "#result_list tbody tr"
# Of each row: its height; whether its title is in sight, beside the time and not below it; and how
# many cells a screen reader would read without their column's name, which is the text before them.
MEASURED = """
rows => rows.map(row => {
    const cells = [...row.cells].filter(cell => cell.querySelector(".action-select") === null);
    const shown = cells.filter(cell => getComputedStyle(cell).display !== "none");
    const frame = row.getBoundingClientRect();
    const name = row.querySelector("th.row-title > a") ?? row.querySelector(".row-title");
    const title = name.getBoundingClientRect();
    const time = row.querySelector(".row-time")?.getBoundingClientRect();
    const isBeside = !time || title.right <= time.left || time.right <= title.left;
    return {
        height: frame.height,
        titled: title.height > 10 && title.top >= frame.top && isBeside,
        unnamed: shown.filter(cell => {
            const name = getComputedStyle(cell, "::before");
            return name.display === "none" || !name.content.includes(cell.dataset.label);
        }).length,
    };
})
"""


def with_its_requests(server: LiveServer) -> LiveServer:
    """Let ``stop`` wait for the threads of the requests, which have connections of their own."""
    server.thread.httpd.daemon_threads = False
    return server


@dataclass
class Visit:
    """``errors`` are the console's with the address that each is about, ``failed`` the requests
    that were refused, ``foreign`` the addresses on other hosts that were asked for."""

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
            self.errors.append(f"{message.text} {message.location['url']}")

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


def is_long(row: dict[str, Any]) -> bool:
    """Whether a row of a list, as MEASURED, is anything but two lines with all that names it."""
    return row["height"] > TWO_LINES or not row["titled"] or bool(row["unnamed"])


def style(page: Page, selector: str, name: str) -> str:
    """A property of the first such element, as the browser computed it."""
    value = page.locator(selector).first.evaluate(
        "(element, name) => getComputedStyle(element)[name]", name
    )
    return str(value)


# Each kind of element as axe sees it, with the place of the first: by what names it, because axe
# looks for that, and for the contrast with its size, its colours and those behind it. Classes that
# only name a model or a field say nothing.
KINDS = """
() => {
    const places = {}, behind = new Map([[document.documentElement, ["", 1]]]);
    const naming = ["aria-label", "aria-labelledby", "title", "alt"];
    document.querySelectorAll("body, body *").forEach((one, place) => {
        const seen = getComputedStyle(one);
        const names = [...one.classList].filter((name) => !/^(app|model|field|column)-/.test(name));
        const own = seen.backgroundColor, [above, opacity] = behind.get(one.parentElement);
        const ground = own.startsWith("rgba") ? (/, 0\\)$/.test(own) ? above : own + above) : own;
        behind.set(one, [ground, opacity * seen.opacity]);
        const kind = [
            one.tagName, names.join(" "), one.getAttribute("role"), one.type,
            one.matches("a, button, th") && !one.textContent.trim(),
            one.labels && one.labels.length, ...naming.map((each) => one.hasAttribute(each)),
            seen.color, ...behind.get(one), seen.backgroundImage, seen.fontSize, seen.fontWeight,
        ].join();
        places[kind] ??= place;
    });
    return places;
}
"""
# Contrasts take most of the time: only those of the elements at these places are looked at. All
# that is right would be told, too, node by node; and all styles would be read for a rule that isn't
# asked for.
AXE = """
(places) => {
    const all = document.querySelectorAll("body, body *");
    all.forEach((one) => one.removeAttribute("data-contrast"));
    places.forEach((place) => all[place].setAttribute("data-contrast", ""));
    axe.configure({ rules: [{ id: "color-contrast", selector: "[data-contrast]" }] });
    const how = { resultTypes: ["violations"], preload: { assets: ["media"] } };
    return axe.run(document, how).then((found) => found.violations);
}
"""


def serious(page: Page, known: set[str] | None = None, *, whole: bool = False) -> list[str]:
    """What axe-core finds that keeps people from using the page, and where. Contrasts are looked
    at once for each kind of element. ``known``: the kinds that were seen on other pages, to which
    those of this one are added; a page without a new one isn't looked at, unless ``whole``."""
    kinds: dict[str, int] = page.evaluate(KINDS)
    new = kinds.keys() - (known or set())
    if known is not None:
        known |= new
    if not new and not whole:
        return []
    # Half a megabyte.
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found: list[Any] = page.evaluate(AXE, sorted(kinds[each] for each in new))
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found
        if each["impact"] in ("moderate", "serious", "critical")
        for node in each["nodes"][:3]
    ]


# By scheme: the kinds of elements whose contrast an earlier test has looked at.
KNOWN: dict[str, set[str]] = {scheme: set() for _, scheme in SCREENS}


def looked_at(page: Page) -> list[str]:
    """What is wrong with the page that is open, on each of the screens."""
    wrong = []
    for width, scheme in SCREENS:
        page.set_viewport_size({"width": width, "height": 844})
        # Without motion, or colours are measured on their way from one scheme to the other.
        page.emulate_media(
            color_scheme=scheme,  # type: ignore[arg-type]
            reduced_motion="reduce",
        )
        page.evaluate(
            "dark => document.documentElement.classList.toggle('dark', dark)", scheme == "dark"
        )
        wrong += [f"{scheme}: {each}" for each in serious(page, KNOWN[scheme], whole=True)]
        if is_scrolled_sideways(page):
            wrong.append(f"{scheme}: scrolled sideways")
    return wrong


# The clicks of a person: the price of a job.


# Capturing, and kept over the pages of a job. A click that a script makes isn't a person's.
COUNT = """
addEventListener("click", (event) => {
  if (event.isTrusted && event.detail > 0) {
    sessionStorage.setItem("clicks", Number(sessionStorage.getItem("clicks")) + 1);
  }
}, true);
"""


def count_clicks(page: Page) -> None:
    """Begin to count, on every page that is opened from now on."""
    page.add_init_script(COUNT)


def clicks(page: Page) -> int:
    return int(page.evaluate("Number(sessionStorage.getItem('clicks'))"))
