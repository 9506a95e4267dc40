"""The provider test: checks the credentials, and sends a test message."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLateError
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeVar
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from memoryproject.foundation.errors.stored_errors import ErrorText, error_text, translate_error
from memoryproject.foundation.integrations.whatsapp.base import (
    Account,
    ProviderRecord,
    Recipient,
    SendError,
    SendResult,
)
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from memoryproject.staff_site.operations.provider_words import Advice, advice_for, advice_for_state

# The time between two parts of a provider's response, and the total time: no page waits longer.
QUIET_SECONDS = 6.0
MAX_SECONDS = 12.0
LOOPBACK = ("127.0.0.1", "localhost", "::1")
NUMBER = re.compile(r"[1-9][0-9]{6,14}")
PUNCTUATION = re.compile(r"[\s()\-./\u200e\u200f\u202a-\u202e\u2066-\u2069]")
TEXT = (
    "This is a test message of your WhatsApp assistant. It arrived, so sending works. / "
    "זו הודעת בדיקה של העוזר שלך בוואטסאפ. היא הגיעה, כלומר השליחה עובדת."
)

Answered = TypeVar("Answered")


@dataclass(frozen=True)
class ProviderState:
    """A provider that could be tested.

    ``missing``: its settings that aren't set; ``demo``: its address is on this machine.
    """

    name: str
    title: str
    missing: list[str]
    demo: bool

    @property
    def configured(self) -> bool:
        return not self.missing


@dataclass(frozen=True)
class Result:
    """The result of a test.

    ``message`` is one sentence, ``words`` is the provider's own text, ``facts`` is what it reports
    about our account, ``took`` is in seconds.
    """

    ok: bool
    message: str
    took: float
    words: str = ""
    todo: str = ""
    facts: dict[str, str] = field(default_factory=dict)


def providers_there() -> list[ProviderState]:
    return [_state(record) for record in PROVIDERS.values()]


def _state(record: ProviderRecord) -> ProviderState:
    needed = (record.number_setting, record.key_setting)
    missing = [name for name in needed if not getattr(settings, name)]
    host = urlsplit(getattr(settings, record.url_setting)).hostname
    return ProviderState(record.name, record.title, missing, host in LOOPBACK)


def number_read(text: str) -> str | None:
    """Return the digits of an international number in any notation; None if it is none."""
    digits = PUNCTUATION.sub("", text[:64]).removeprefix("+").removeprefix("00")
    return digits if NUMBER.fullmatch(digits) else None


def message_send(provider: str, number: str) -> Result:
    """Send the test text through the real client. Nothing of it is stored."""
    client = PROVIDERS[provider].connect(timeout=QUIET_SECONDS)
    to = Recipient(f"{number}@c.us", phone=number)

    def ended(sent: SendResult) -> Result:
        message = _("The provider took the message. Look at the phone: it should be there soon.")
        return Result(True, message, 0.0, words=sent.provider_message_id)

    callback = str(uuid.uuid4())
    return _call_provider(
        provider,
        lambda: client.send_text(to=to, text=TEXT, callback_id=callback),
        ended,
        sends=True,
    )


def credentials_check(provider: str) -> Result:
    """Query the provider about our account."""

    def ended(found: Account) -> Result:
        if found.ready:
            return Result(True, _("The credentials are good."), 0.0, facts=found.facts)
        advice = advice_for_state(found.state)
        return Result(False, str(advice.what), 0.0, found.state, str(advice.todo), found.facts)

    client = PROVIDERS[provider].connect(timeout=QUIET_SECONDS)
    return _call_provider(provider, client.account, ended, sends=False)


def _call_provider(
    provider: str,
    ask: Callable[[], Answered],
    ended: Callable[[Answered], Result],
    *,
    sends: bool,
) -> Result:
    """Run ``ask`` and return its result with the time it took; errors as text without secrets.

    Only ``ask`` runs in another thread: texts must be in the language of this thread.
    """
    started = time.monotonic()
    future = _test_threads().submit(ask)
    try:
        result = ended(future.result(timeout=MAX_SECONDS))
    except SendError as error:
        words = _without_credentials(error)
        result = _failed(advice_for(provider, error, sends=sends), words)
    except TooLateError:
        # One that waits for a thread isn't to begin any more.
        future.cancel()
        unknown = SendError(ErrorText("send_timeout"), outcome_unknown=True)
        result = _failed(advice_for(provider, unknown, sends=sends), "")
    return replace(result, took=time.monotonic() - started)


def _failed(advice: Advice, words: str) -> Result:
    return Result(False, str(advice.what), 0.0, words, str(advice.todo))


def _without_credentials(error: SendError) -> str:
    """Return the error's text without our credentials, which a server may repeat."""
    text = translate_error(error_text(error))
    for record in PROVIDERS.values():
        secret = getattr(settings, record.key_setting)
        text = text.replace(secret, "•••") if secret else text
    return text


@lru_cache(maxsize=1)
def _test_threads() -> ThreadPoolExecutor:
    """Return a pool of two threads: a provider that responds slowly delays only other tests."""
    return ThreadPoolExecutor(max_workers=2, thread_name_prefix="provider-test")
