"""``Idempotency-Key``: repeated or concurrent calls have one effect and one stored response.

The response is stored for a day.
"""

import functools
import json
import logging
import time
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.http import HttpResponse
from django.utils import timezone
from django.utils.crypto import salted_hmac
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.leases import LeaseLostError
from memoryproject.foundation.process.narrowing import present
from memoryproject.foundation.rest_kit import authentication, errors, throttles
from memoryproject.foundation.rest_kit.models import IdempotentAnswer

logger = logging.getLogger(__name__)

KEPT = timedelta(hours=24)
MAX_KEY_LENGTH = 255
# Printable ASCII. HTTP itself strips spaces from the ends of a header.
PRINTABLE = r"^[!-~]([ -~]*[!-~])?$"
# How long a duplicate call waits for the first one: at first, and then as one of a limited number;
# and how often it checks.
SHORT_WAIT_SECONDS = 10.0
PATIENCE_SECONDS = 80.0
LOOK_AGAIN_SECONDS = 0.05
KEPT_HEADERS = ("ETag", "Location", "Content-Location", "Retry-After")
REPLAYED = "Idempotent-Replayed"

Handler = Callable[..., Any]


class NotKept(errors.Conflict):
    default_code = "answer_not_kept"
    default_detail = (
        "The first call with this key was carried out. Its answer isn't kept, because something "
        "was forgotten meanwhile."
    )


class UnkeptResponse(Response):
    """A response that isn't stored: the next call with its key is carried out."""


def idempotent(*, atomic: bool, holds_texts: bool = True) -> Callable[[Handler], Handler]:
    """Let a view's method accept the header.

    ``holds_texts``: a forgetting meanwhile keeps the response from being stored. A receipt holds no
    texts, and the forgetting is its own.

    ``atomic``: the method and its stored response are one transaction, so that a crash keeps both
    or neither. The method must make no HTTP call. Otherwise work done before a crash may be
    repeated with the same key, and the method must tolerate that. The method finds the key's hash
    in ``view.idempotency_ref`` (None without a key), to recognise its earlier work.
    """

    def decorate(handler: Handler) -> Handler:
        @functools.wraps(handler)
        def answer(view: Any, request: Request, *args: Any, **kwargs: Any) -> Any:
            view.idempotency_ref = None
            key = request.headers.get("Idempotency-Key")
            if key is None:
                return handler(view, request, *args, **kwargs)
            once = Once.of(request, key)
            view.idempotency_ref = once.key_hash
            return once.answer(
                lambda: handler(view, request, *args, **kwargs),
                atomic=atomic,
                holds_texts=holds_texts,
            )

        answer.takes_idempotency_key = True  # type: ignore[attr-defined]
        return answer

    return decorate


@dataclass(frozen=True)
class Once:
    """One call with a key."""

    request: Request
    caller: str
    key_hash: str
    request_hash: str

    @classmethod
    def of(cls, request: Request, key: str) -> "Once":
        caller = present(authentication.caller_of(request))
        if not key or len(key) > MAX_KEY_LENGTH or not (key.isascii() and key.isprintable()):
            detail = f"Idempotency-Key must have 1 to {MAX_KEY_LENGTH} printable ASCII characters."
            raise errors.refuse(detail, attr="Idempotency-Key")
        parts = [request.method, request.get_full_path(), request.accepted_media_type, request.data]
        text = json.dumps(parts, sort_keys=True, default=str)
        return cls(request, caller.key, _hash(f"{caller.key}\0{key}"), _hash(text))

    def answer(self, execute: Callable[[], Any], *, atomic: bool, holds_texts: bool = True) -> Any:
        """Return the response of the first call with this key."""
        row = self._claim_or_wait()
        if row.status is not None:
            return _again(row)
        try:
            with transaction.atomic() if atomic else nullcontext():
                return self._store(row, execute(), holds_texts=holds_texts)
        except BaseException:
            self._give_up(row)
            raise

    def _claim_or_wait(self) -> IdempotentAnswer:
        """Return our own new row, or the row that holds the response. Raises TooManyWaiting."""
        row = self._wait(SHORT_WAIT_SECONDS)
        if row is None:
            # The first call is a slow one. Its duplicates must not hold all threads.
            with throttles.waiting_calls.place():
                row = self._wait(PATIENCE_SECONDS)
        if row is None:
            raise errors.StillRunning
        return row

    def _wait(self, seconds: float) -> IdempotentAnswer | None:
        """Return the row as soon as there is one; None if there is none after so long."""
        until = time.monotonic() + seconds
        while (row := self._claim_or_read()) is None and time.monotonic() < until:
            time.sleep(LOOK_AGAIN_SECONDS)
        return row

    def _claim_or_read(self) -> IdempotentAnswer | None:
        """Return our own new row, the row that holds the response, or None while it is awaited."""
        now = timezone.now()
        of_this_key = IdempotentAnswer.objects.filter(caller=self.caller, key_hash=self.key_hash)
        of_this_key.filter(created_at__lte=now - KEPT).delete()
        lease = IdempotentAnswer.lease_values(uuid.uuid4(), now)
        try:
            row, is_ours = IdempotentAnswer.objects.get_or_create(
                caller=self.caller,
                key_hash=self.key_hash,
                defaults={"request_hash": self.request_hash, **lease},
            )
        except IntegrityError:
            # Another call was first, and has given its key up since.
            return None
        if row.request_hash != self.request_hash:
            raise errors.AnotherBody
        if is_ours or row.status is not None:
            return row
        # A dead process may have left it.
        taken = of_this_key.filter(status=None).claim(row, now=now)
        return of_this_key.get(pk=row.pk) if taken else None

    def _store(self, row: IdempotentAnswer, response: Any, *, holds_texts: bool) -> HttpResponse:
        """Store the response and return it. Raises LeaseLostError."""
        rendered = _rendered(self.request, response)
        ours = IdempotentAnswer.objects.filter(pk=row.pk, lease_token=row.lease_token)
        if isinstance(response, UnkeptResponse):
            self._give_up(row)
            return rendered
        values = {
            "status": rendered.status_code,
            "content_type": rendered.headers["Content-Type"],
            "headers": {
                name: rendered.headers[name] for name in KEPT_HEADERS if name in rendered.headers
            },
            "body": rendered.content.decode(),
        }
        kept = ours.filter(withheld=False) if holds_texts else ours
        if kept.update(**values, withheld=False):
            return rendered
        if ours.update(status=rendered.status_code):
            return rendered
        raise LeaseLostError(f"call {row.pk} is carried out by another process now")

    def _give_up(self, row: IdempotentAnswer) -> None:
        """Release the key after a failure: nothing was done, and the next call may try."""
        try:
            ours = IdempotentAnswer.objects.filter(pk=row.pk, status__isnull=True)
            ours.filter(lease_token=row.lease_token).delete()
        except Exception:
            logger.exception("A key could not be given back; it is free again when its lease ends.")


def _rendered(request: Request, response: Any) -> HttpResponse:
    """Return the response as bytes, so that all duplicate calls get the same."""
    renderer = request.accepted_renderer
    content = renderer.render(response.data, request.accepted_media_type, {"response": response})
    kind = f"{renderer.media_type}; charset={renderer.charset or 'utf-8'}"
    headers = {name: response[name] for name in KEPT_HEADERS if response.has_header(name)}
    return HttpResponse(content, status=response.status_code, content_type=kind, headers=headers)


def _again(row: IdempotentAnswer) -> HttpResponse:
    if row.withheld:
        raise NotKept
    return HttpResponse(
        row.body.encode(),
        status=row.status,
        content_type=row.content_type,
        headers={**row.headers, REPLAYED: "true"},
    )


def _hash(text: str) -> str:
    return salted_hmac("api.idempotency", text, algorithm="sha256").hexdigest()


def answers_drop() -> int:
    """Delete responses that are older than a day; return the number of rows."""
    old = IdempotentAnswer.objects.filter(created_at__lte=timezone.now() - KEPT)
    return old.delete()[0]
