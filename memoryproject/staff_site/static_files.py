"""Addresses of static files that change with the files' content, without a collectstatic step."""

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from django import template
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.template.defaultfilters import stringfilter
from django.utils.safestring import SafeString

register = template.Library()
VERSION = "v"
LENGTH = 12
# A script in a file of its own, for which nothing says when it runs.
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


@register.filter(is_safe=True)
@stringfilter
def deferred(html: str) -> str:
    """Return a part of a page whose scripts run, in order, once the page is shown."""
    return SafeString(SCRIPT.sub("<script defer", html))
