"""Shows that a secret is set without showing any of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memoryproject.staff_site.operations.setting_meanings import ADDRESSES, DESCRIBED, SECRET

HIDDEN = "•••"
# A setting that nobody described here is rather hidden than shown.
LIKE_A_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|SALT")
# Shorter ones would be found in the middle of common words.
MIN_REPLACED = 6
LIKE_AN_ADDRESS = re.compile(r"URL|URI|BROKER|DSN|PROXY")


def is_secret(name: str) -> bool:
    return name in SECRET or (name not in DESCRIBED and bool(LIKE_A_SECRET.search(name)))


def is_address(name: str) -> bool:
    return name in ADDRESSES or (name not in DESCRIBED and bool(LIKE_AN_ADDRESS.search(name)))


def secret_shown(value: str) -> str:
    """How long it is: enough to see that the right one was pasted whole."""
    if not value:
        return _("not set")
    return ngettext("set, %(count)d character", "set, %(count)d characters", len(value)) % {
        "count": len(value)
    }


def address_shown(value: str) -> str:
    """An address without what it may hold of credentials: who logs in, and what follows the
    path. One that can't be read is hidden as a whole."""
    if not value:
        return _("not set")
    try:
        parts = urlsplit(value)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return secret_shown(value)
    if not parts.scheme or not host or "@" in parts.path:
        return secret_shown(value)
    user = f"{HIDDEN}@" if "@" in parts.netloc else ""
    place = f"[{host}]" if ":" in host else host
    rest = f"?{HIDDEN}" if parts.query or parts.fragment else ""
    return f"{parts.scheme}://{user}{place}{f':{port}' if port else ''}{parts.path}{rest}"


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """A text of the system checks without the values that it may repeat."""
    long = {each for each in secrets if len(each) >= MIN_REPLACED}
    for secret in sorted(long, key=len, reverse=True):
        text = text.replace(secret, HIDDEN).replace(repr(secret)[1:-1], HIDDEN)
    return text
