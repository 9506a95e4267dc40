"""Counts what a person clicks: the price of a job."""

from __future__ import annotations

from playwright.sync_api import Page

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
