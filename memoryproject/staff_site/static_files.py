"""Addresses of static files that change with the files' content, without a collectstatic step.

A browser's first page has its style sheets within it, so that it is shown without a second request.
page.js lets the browser keep them, and tells by a cookie which it has.
"""

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from django import template
from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.template.defaultfilters import stringfilter
from django.utils.safestring import SafeString

register = template.Library()
VERSION = "v"
LENGTH = 12
# A script in a file of its own, for which nothing says when it runs.
STYLE = re.compile(rb'<link rel="stylesheet" href="([^"?]+)\?v=([0-9a-f]+)">')
KEPT = "styles"
COMMENT = re.compile(rb"/\*(?:[^/*]|/(?!\*)|\*(?!/))*\*/\s*")
SCRIPT = re.compile(r"<script(?=[^<>]*\ssrc=)(?![^<>]*\s(?:defer|async)\b)")


class VersionedStorage(StaticFilesStorage):
    """Adds ``?v=`` with the beginning of the content's SHA-256."""

    def url(self, name: str | None, force: bool = False) -> str:
        address: str = super().url(name)
        version = version_of(str(name)) if name else ""
        return f"{address}?{VERSION}={version}" if version else address


@cache
def version_of(name: str) -> str:
    """Return the mark of a file's content; "" for a file that isn't there."""
    found: Any = finders.find(name)
    return hashlib.sha256(Path(found).read_bytes()).hexdigest()[:LENGTH] if found else ""


def with_styles(page: bytes, kept: str) -> bytes:
    """Return a page with the style sheets in it, but for those whose versions are ``kept``.

    Comments are left out.
    """

    def within(found: re.Match[bytes]) -> bytes:
        address, version = found[1].decode(), found[2].decode()
        path: Any = finders.find(address.removeprefix(settings.STATIC_URL))
        if path is None or version in kept.split("."):
            return found[0]
        opening = f'<style data-address="{address}" data-version="{version}">'
        return opening.encode() + COMMENT.sub(b"", Path(path).read_bytes()) + b"</style>"

    return STYLE.sub(within, page)


@register.filter(is_safe=True)
@stringfilter
def deferred(html: str) -> str:
    """Return a part of a page whose scripts run, in order, once the page is shown."""
    return SafeString(SCRIPT.sub("<script defer", html))
