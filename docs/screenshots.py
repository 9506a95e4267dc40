"""Makes the pictures in docs/images: `make screenshots`.

Starts a server of its own with a database of its own, tells it the demo's story, and looks at it
with a headless Chromium (Debian: apt-get install chromium). Nothing outside a temporary folder and
docs/images is written, and nothing is asked from any other host.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

PROJECT = Path(__file__).resolve().parent.parent
IMAGES = PROJECT / "docs" / "images"
WIDE, NARROW = (1280, 860), (390, 844)
READY_WITHIN_SECONDS = 60
USER = "admin"


@dataclass(frozen=True)
class Picture:
    """One file of docs/images: which page, how wide, light or dark. ``open`` leads there from
    the dashboard; ``full``: the whole page instead of the window."""

    name: str
    open: Callable[[Page], None]
    size: tuple[int, int] = WIDE
    dark: bool = False
    full: bool = False


def goes(address: str) -> Callable[[Page], None]:
    def go(page: Page) -> None:
        page.goto(address)

    return go


def conversation(name: str) -> Callable[[Page], None]:
    """A person's conversation, by the list."""

    def go(page: Page) -> None:
        page.goto("/admin/sessions_app/chat/")
        address = page.locator("a[href*='/conversation/']", has_text=name).first
        if address.count() == 0:
            row = page.locator("tr", has_text=name).first
            address = row.locator("a[href*='/conversation/']").first
        page.goto(address.get_attribute("href") or "")
        page.wait_for_load_state("networkidle")

    return go


def first_of(list_address: str, link: str) -> Callable[[Page], None]:
    """The first row of a list."""

    def go(page: Page) -> None:
        page.goto(list_address)
        href = page.locator(link).first.get_attribute("href")
        page.goto(str(href))

    return go


def contact(name: str) -> Callable[[Page], None]:
    """The page of a person, by the list of contacts."""

    def go(page: Page) -> None:
        page.goto("/admin/contacts/")
        page.get_by_role("link", name=name).first.click()
        page.wait_for_load_state()

    return go


def forget_preview(page: Page) -> None:
    """What would go with a memory, before anything goes."""
    page.goto("/admin/memories_app/memory/?q=flour")
    page.locator("input.action-select").first.check()
    page.locator("select[name=action]").first.select_option("forget_selected")
    with page.expect_navigation():
        page.locator("button[type=submit][name=index], [name=index]").first.click()


def replay(page: Page) -> None:
    """The newest answer for which something was recalled."""
    page.goto("/admin/sessions_app/turn/?state__exact=sent")
    links = page.locator("#result_list th a[href*='/change/']")
    for address in [links.nth(place).get_attribute("href") for place in range(links.count())]:
        page.goto(str(address))
        if page.get_by_text("No memory matched").count() == 0:
            return


CHANGE = "#result_list a[href*='/change/']"
PICTURES = (
    Picture("dashboard", goes("/admin/?period=30")),
    Picture("inbox", goes("/admin/sessions_app/chat/")),
    Picture("conversation", conversation("Emma Clarke")),
    Picture("replay", replay),
    Picture("contact", contact("Emma Clarke")),
    Picture("costs", goes("/admin/costs/")),
    Picture("memories", goes("/admin/memories_app/memory/")),
    Picture("forget-preview", forget_preview),
    Picture("receipt", first_of("/admin/sessions_app/forgetreceipt/?kind__exact=chat", CHANGE)),
    Picture("audit", goes("/admin/audit/auditevent/")),
    Picture("operations", goes("/admin/operations/")),
    Picture("dead-turns", goes("/admin/operations/turns/")),
    Picture("settings-in-force", goes("/admin/operations/settings/")),
    Picture("conversation-he-dark", conversation("דנה לוי"), size=NARROW, dark=True),
)


def main() -> int:
    asked = _arguments()
    # Whoever ends this script ends its server, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    wanted = [each for each in PICTURES if not asked.only or each.name in asked.only]
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("Chromium is not installed (Debian: apt-get install chromium).", file=sys.stderr)
        return 1
    asked.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="screenshots-") as folder:
        environment = _environment(Path(folder))
        with _server(environment) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            failed = _take(browser, url, environment["ADMIN_PASSWORD"], wanted, asked.into)
            browser.close()
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=IMAGES, help="Default: docs/images.")
    parser.add_argument("--only", nargs="*", default=[], help="Names of pictures.")
    return parser.parse_args()


def _environment(folder: Path) -> dict[str, str]:
    """Settings of its own; those of the user and of .env don't count."""
    own = {
        "DATA_DIR": str(folder / "data"),
        "LOG_DIR": str(folder / "logs"),
        "PORT": str(_free_port()),
        "ADMIN_PASSWORD": secrets.token_urlsafe(12),
        "BUSINESS_TIME_ZONE": "Asia/Jerusalem",
        "ENABLE_MEMORY_SYSTEM": "true",
        "GODFATHER_PHONE": "15550199999@c.us",
        # As of a busy café: the demo's few words would cost nothing.
        "MODEL_PRICES": "gpt-4o-mini=150/600",
    }
    names = re.findall(
        r"^(?:# )?([A-Z][A-Z0-9_]+)=",
        (PROJECT / ".env.example").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    return {**os.environ, **dict.fromkeys(names, ""), **own}


@contextmanager
def _server(environment: dict[str, str]) -> Iterator[str]:
    """The web server and its workers over the demo's data, stopped in the end."""
    manage = [sys.executable, str(PROJECT / "manage.py")]
    for command in (
        ["migrate", "--verbosity=0"],
        ["createcachetable"],
        ["memories_reembed", "--init"],
        ["ensure_admin"],
        ["demo_data"],
        ["audit_verify"],
    ):
        subprocess.run([*manage, *command], env=environment, cwd=PROJECT, check=True)
    url = f"http://127.0.0.1:{environment['PORT']}"
    web = [sys.executable, "-m", "gunicorn", "memoryproject.wsgi", "--threads", "4"]
    web += ["--bind", url.removeprefix("http://"), "--no-control-socket"]
    running = [
        subprocess.Popen(command, env=environment, cwd=PROJECT)
        for command in (web, [*manage, "answer"], [*manage, "qcluster"])
    ]
    try:
        _wait_until_ready(url)
        yield url
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(timeout=60)


def _wait_until_ready(url: str) -> None:
    for _ in range(READY_WITHIN_SECONDS * 2):
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise SystemExit("The server did not become ready.")


def _take(
    browser: Browser, url: str, password: str, wanted: list[Picture], into: Path
) -> list[str]:
    """All pictures; returns the names of those that could not be taken."""
    failed = []
    known = _log_in(browser, url, password)
    for picture in wanted:
        page = _page(browser, url, known, picture)
        try:
            picture.open(page)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=into / f"{picture.name}.png", full_page=picture.full)
            print(f"{picture.name}.png")
        except Exception as error:
            print(f"{picture.name}: {error}", file=sys.stderr)
            failed.append(picture.name)
        page.context.close()
    return failed


def _log_in(browser: Browser, url: str, password: str) -> Any:
    """Once, or the audit log would tell of little else; returns the session's cookies."""
    context = browser.new_context(base_url=url)
    page = context.new_page()
    page.goto("/admin/login/?next=/healthz")
    page.fill("#id_username", USER)
    page.fill("#id_password", password)
    with page.expect_navigation():
        page.locator("#id_password").press("Enter")
    cookies = context.storage_state()
    context.close()
    return cookies


def _page(browser: Browser, url: str, known: Any, picture: Picture) -> Page:
    width, height = picture.size
    context = browser.new_context(
        base_url=url,
        storage_state=known,
        viewport={"width": width, "height": height},
        color_scheme="dark" if picture.dark else "light",
        device_scale_factor=1.5 if width < 500 else 1,
    )
    return context.new_page()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
