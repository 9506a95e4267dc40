"""How long a login lasts, which factors proved it, and the second factor."""

from base64 import b32encode
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from io import BytesIO
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import get_random_string, salted_hmac
from django.utils.safestring import SafeString, mark_safe
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from memoryproject.foundation.admin_kit.staff_pages import is_live
from memoryproject.foundation.audit.audit_events import Actor, audit_record

SEEN = "seen"
SECOND_FACTOR = "second_factor"
# A session's row isn't written for each page.
WRITTEN_EVERY_SECONDS = 60


class Standing(Enum):
    """The state of a login session.

    ``IDLE``: unused for too long. ``UNPROVED``: a second factor is set up, and this session began
    without it. ``TO_SET_UP``: a second factor is required, and there is none.
    """

    GOOD = "good"
    IDLE = "idle"
    UNPROVED = "unproved"
    TO_SET_UP = "to set up"


@receiver(user_logged_in, dispatch_uid="staff_session_begins")
def _begin(request: HttpRequest, **_: Any) -> None:
    """Note the beginning of each login."""
    request.session[SEEN] = _now()


def standing_of(request: HttpRequest) -> Standing:
    """Return the state of a logged-in user's session. Takes one query for staff."""
    seen = request.session.get(SEEN)
    if seen is not None and _now() - seen > settings.STAFF_SESSION_MINUTES * 60:
        return Standing.IDLE
    if not request.user.is_staff:
        return Standing.GOOD
    device = device_of(request.user)
    if device is not None:
        proved = request.session.get(SECOND_FACTOR) == device.pk
        return Standing.GOOD if proved else Standing.UNPROVED
    return Standing.TO_SET_UP if settings.STAFF_TWO_FACTOR == "required" else Standing.GOOD


def device_of(user: Any) -> TOTPDevice | None:
    """Return the user's second factor, if one is set up."""
    return TOTPDevice.objects.filter(user=user, confirmed=True).order_by("pk").first()


def prove(request: HttpRequest, device: TOTPDevice) -> None:
    """Record that this session was proved with both factors, after a right code."""
    request.session[SECOND_FACTOR] = device.pk


def keep_alive(request: HttpRequest) -> None:
    """Record the user's activity, at most once a minute. A page's own refreshing doesn't count."""
    seen = request.session.get(SEEN)
    if not is_live(request) and (seen is None or _now() - seen >= WRITTEN_EVERY_SECONDS):
        request.session[SEEN] = _now()


def _now() -> int:
    return int(timezone.now().timestamp())


# Codes of an app on a phone (TOTP), and backup codes on paper.


BACKUP_CODES = 10
# Without 0, 1, l and o, which look alike.
_ALPHABET = "23456789abcdefghijkmnpqrstuvwxyz"
_LENGTH = 10
_STORED = 16


@dataclass(frozen=True)
class Checked:
    """The result of checking a code.

    ``device``: the matching one, if the code was right. ``wait_until``: after wrong codes, none is
    checked before this time.
    """

    device: TOTPDevice | None = None
    wait_until: datetime | None = None


def begun_of(user: Any) -> TOTPDevice | None:
    """Return a second factor that waits for its first code."""
    return TOTPDevice.objects.filter(user=user, confirmed=False).order_by("-pk").first()


def backup_codes_left(user: Any) -> int:
    return StaticToken.objects.filter(device__user=user).count()


@transaction.atomic
def second_factor_begin(*, user: Any) -> TOTPDevice:
    """Create a new secret; it is active once a code proves that the app has it.

    There must be no second factor yet.
    """
    _lock(user)
    TOTPDevice.objects.filter(user=user, confirmed=False).delete()
    return TOTPDevice.objects.create(user=user, name="app", confirmed=False)


@transaction.atomic
def second_factor_confirm(*, user: Any, code: str) -> list[str] | None:
    """Activate the second factor with the first code of the app.

    Returns the backup codes, which are never shown again; None if the code is wrong.
    """
    _lock(user)
    device = begun_of(user)
    if device is None or device_of(user) is not None:
        return None
    if not device.verify_token(_digits(code)):
        # A secret that isn't active needs no protection: a mistyped code may be repeated at once.
        device.throttle_reset()
        return None
    device.confirmed = True
    device.save(update_fields=["confirmed"])
    _record("second_factor.set_up", user, Actor("staff", user.get_username()))
    return _new_backup_codes(user)


@transaction.atomic
def backup_codes_renew(*, user: Any) -> list[str]:
    """Create new backup codes; the old ones become invalid."""
    _lock(user)
    _record("second_factor.backup_codes", user, Actor("staff", user.get_username()))
    return _new_backup_codes(user)


@transaction.atomic
def second_factor_remove(*, user: Any, actor: Actor) -> bool:
    """Remove the second factor. Return whether there was one.

    ``actor``: the person, or somebody who does it for them.
    """
    _lock(user)
    gone, _ = TOTPDevice.objects.filter(user=user).delete()
    codes, _ = StaticDevice.objects.filter(user=user).delete()
    if not gone and not codes:
        return False
    own = actor.name == user.get_username()
    _record("second_factor.remove" if own else "second_factor.reset", user, actor)
    return True


@transaction.atomic
def code_check(*, user: Any, code: str) -> Checked:
    """Use up a code: six digits of the app, or a backup code."""
    typed = _digits(code)
    own = TOTPDevice.objects.select_for_update().filter(user=user, confirmed=True).order_by("pk")
    app = own.first()
    if app is None:
        return Checked()
    if len(typed) == app.digits and typed.isascii() and typed.isdigit():
        return _checked(app, app, typed)
    papers = StaticDevice.objects.select_for_update().filter(user=user).order_by("pk")
    paper = papers.first()
    if paper is None:
        return Checked()
    found = _checked(app, paper, _stored(user, typed))
    if found.device is not None:
        _record("second_factor.backup_code", user, Actor("staff", user.get_username()))
    return found


def _checked(app: TOTPDevice, device: TOTPDevice | StaticDevice, token: str) -> Checked:
    allowed, why = device.verify_is_allowed()
    if not allowed:
        return Checked(wait_until=why["locked_until"])
    return Checked(device=app if device.verify_token(token) else None)


def secret_shown(device: TOTPDevice) -> str:
    """Return the secret in groups of four, for typing."""
    text = b32encode(device.bin_key).decode().rstrip("=")
    return " ".join(text[start : start + 4] for start in range(0, len(text), 4))


def qr_code(device: TOTPDevice) -> SafeString:
    """Return a drawing (SVG) that apps scan; it needs no script and no other file."""
    import qrcode  # noqa: PLC0415 slow to import, and rarely needed
    from qrcode.image.svg import SvgPathImage  # noqa: PLC0415

    image = qrcode.make(device.config_url, image_factory=SvgPathImage, box_size=12)
    written = BytesIO()
    image.save(written)
    drawing = written.getvalue().decode().partition("?>")[2]
    return mark_safe(drawing)  # noqa: S308 our own drawing: squares alone


def _new_backup_codes(user: Any) -> list[str]:
    StaticDevice.objects.filter(user=user).delete()
    device = StaticDevice.objects.create(user=user, name="paper")
    codes = [get_random_string(_LENGTH, _ALPHABET) for _ in range(BACKUP_CODES)]
    StaticToken.objects.bulk_create(
        [StaticToken(device=device, token=_stored(user, code)) for code in codes]
    )
    return [f"{code[:5]}-{code[5:]}" for code in codes]


def _stored(user: Any, code: str) -> str:
    return salted_hmac("backup code", f"{user.pk}:{code}", algorithm="sha256").hexdigest()[:_STORED]


def _digits(code: str) -> str:
    """Return the code without spaces: apps and papers show codes in groups."""
    return "".join(code.split()).replace("-", "").lower()[:64]


def _lock(user: Any) -> None:
    """Lock the user's row, so that two pages of one person run one after the other."""
    get_user_model()._default_manager.select_for_update().get(pk=user.pk)


def _record(action: str, user: Any, actor: Actor) -> None:
    audit_record(action, actor, "user", user.pk)
