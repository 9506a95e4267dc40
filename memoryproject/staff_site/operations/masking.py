"""Show that a secret is set without showing any of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memoryproject.staff_site.operations.setting_meanings import ADDRESSES, DESCRIBED, SECRET

HIDDEN = "•••"
# A setting without a description is hidden rather than shown.
LIKE_A_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|SALT")
# Shorter secrets would also match parts of common words.
MIN_REPLACED = 6
LIKE_AN_ADDRESS = re.compile(r"URL|URI|BROKER|DSN|PROXY")


def is_secret(name: str) -> bool:
    return name in SECRET or (name not in DESCRIBED and bool(LIKE_A_SECRET.search(name)))


def is_address(name: str) -> bool:
    return name in ADDRESSES or (name not in DESCRIBED and bool(LIKE_AN_ADDRESS.search(name)))


def secret_shown(value: str) -> str:
    """Return the length of the secret: enough to see that it was pasted completely."""
    if not value:
        return _("not set")
    return ngettext("set, %(count)d character", "set, %(count)d characters", len(value)) % {
        "count": len(value)
    }


def address_shown(value: str) -> str:
    """Return an address without the parts that may hold credentials.

    These are the user information and everything after the path. An address that can't be parsed is
    hidden completely.
    """
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
    """Return a system check's text without the secret values that it may repeat."""
    long = {each for each in secrets if len(each) >= MIN_REPLACED}
    for secret in sorted(long, key=len, reverse=True):
        text = text.replace(secret, HIDDEN).replace(repr(secret)[1:-1], HIDDEN)
    return text
