"""The page that tests the providers: it checks the credentials, and sends a test message."""

import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, TimeoutError as TooLateError
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from django import forms
from django.conf import settings
from django.core import signing
from django.core.cache import cache
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters

from memoryproject.foundation.admin_kit.staff_pages import staff_page, unstored
from memoryproject.foundation.audit.audit_events import staff_record
from memoryproject.foundation.errors.stored_errors import ErrorText, error_text, translate_error
from memoryproject.foundation.integrations.whatsapp import base as whatsapp, registry
from memoryproject.foundation.process.narrowing import instance
from memoryproject.foundation.tables import read_table
from memoryproject.foundation.text.phone_numbers import number_read

# The time between two parts of a provider's response, and the total time: no page waits longer.
QUIET_SECONDS = 6.0
MAX_SECONDS = 12.0
TEXT = (
    "This is a test message of your WhatsApp assistant. It arrived, so sending works. / "
    "זו הודעת בדיקה של העוזר שלך בוואטסאפ. היא הגיעה, כלומר השליחה עובדת."
)


class Advice(NamedTuple):
    """Advice on an error: ``what`` is wrong, and ``todo``, what to do about it."""

    what: Any
    todo: Any


@dataclass(frozen=True)
class Result:
    """The result of a test.

    ``message`` is one sentence, ``words`` is the provider's own text, ``facts`` is what it reports
    about our account, ``took`` is in seconds.
    """

    ok: bool
    message: str
    took: float = 0.0
    words: str = ""
    todo: str = ""
    facts: dict[str, str] = field(default_factory=dict)


def provider_call(provider: str, number: str) -> Result:
    """Send the test text to this number through the real client, and store nothing of it.

    Without a number it queries the provider about our account. Errors are returned as text without
    secrets. Only the call runs in another thread: texts must be in the language of this thread.
    """
    client = registry.PROVIDERS[provider].connect(timeout=QUIET_SECONDS)

    def send() -> whatsapp.SendResult:
        to = whatsapp.Recipient(f"{number}@c.us", phone=number)
        return client.send_text(to=to, text=TEXT, callback_id=str(uuid.uuid4()))

    call: Callable[[], whatsapp.SendResult | whatsapp.Account] = send if number else client.account
    started = time.monotonic()
    future = _test_threads().submit(call)
    try:
        result = _result_of(future.result(timeout=MAX_SECONDS))
    except whatsapp.SendError as error:
        advice = advice_for(provider, error, sends=bool(number))
        result = _failed(advice, _without_credentials(error))
    except TooLateError:
        # One that waits for a thread isn't to begin any more.
        future.cancel()
        unknown = whatsapp.SendError(ErrorText("send_timeout"), outcome_unknown=True)
        result = _failed(advice_for(provider, unknown, sends=bool(number)), "")
    return replace(result, took=time.monotonic() - started)


def _result_of(answer: whatsapp.SendResult | whatsapp.Account) -> Result:
    if isinstance(answer, whatsapp.SendResult):
        message = _("The provider took the message. Look at the phone: it should be there soon.")
        return Result(True, message, words=answer.provider_message_id)
    if answer.ready:
        return Result(True, _("The credentials are good."), facts=answer.facts)
    return replace(_failed(advice_for_state(answer.state), answer.state), facts=answer.facts)


def _failed(advice: Advice, words: str) -> Result:
    return Result(False, str(advice.what), words=words, todo=str(advice.todo))


def _without_credentials(error: whatsapp.SendError) -> str:
    """Return the error's text without our credentials, which a server may repeat."""
    text = translate_error(error_text(error))
    for record in registry.PROVIDERS.values():
        for secret in filter(
            None, whatsapp.keys_by_number(getattr(settings, record.key_setting)).values()
        ):
            text = text.replace(secret, "•••")
    return text


@lru_cache(maxsize=1)
def _test_threads() -> ThreadPoolExecutor:
    """Return a pool of two threads: a provider that responds slowly delays only other tests."""
    return ThreadPoolExecutor(max_workers=2, thread_name_prefix="provider-test")


# The page.


SALT = "operations.provider-test"
# A page that was open for longer must be reloaded.
GOOD_FOR_SECONDS = 3_600
# The limit of tests in this number of seconds, for all users together.
TESTS, WITHIN_SECONDS = 5, 300


class TestForm(forms.Form):
    """The form of a test. ``once`` is valid for one test: a reloaded page sends nothing twice."""

    __test__ = False

    provider = forms.ChoiceField(label=gettext_lazy("Provider"))
    number = forms.CharField(
        label=gettext_lazy("Phone number"),
        max_length=32,
        required=False,
        help_text=gettext_lazy("International, such as +972 50 123 4567. It isn't stored."),
        widget=forms.TextInput(
            attrs={"type": "tel", "autocomplete": "off", "inputmode": "tel", "dir": "ltr"}
        ),
    )
    once = forms.CharField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, sends: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sends = sends
        there = [(each.name, each.title) for each in registry.provider_states() if each.configured]
        instance(self.fields["provider"], forms.ChoiceField).choices = there

    def clean_number(self) -> str:
        if not self.sends:
            return ""
        digits = number_read(self.cleaned_data["number"])
        if digits is None:
            raise forms.ValidationError(
                _("Write the whole number with its country code: 7 to 15 digits.")
            )
        return digits

    def clean_once(self) -> str:
        try:
            return str(
                signing.loads(self.cleaned_data["once"], salt=SALT, max_age=GOOD_FOR_SECONDS)
            )
        except signing.BadSignature:
            raise forms.ValidationError(_("This page is too old: load it again.")) from None


@sensitive_post_parameters("number")
def provider_page(request: HttpRequest) -> HttpResponseBase:
    """Handle the page. GET shows the form; POST tests and shows the result, uncached."""
    result, status, form = None, 200, _fresh_form()
    if request.method == "POST":
        sends = request.POST.get("do") != "check"
        posted = TestForm(request.POST, sends=sends)
        refusal = None
        if not posted.is_valid():
            form, status = _form_again(posted, request.POST), 400
        elif refusal := _refusal(posted.cleaned_data["once"]):
            posted.add_error(None, refusal)
            form, status = _form_again(posted, request.POST), 429
        else:
            provider, number = (posted.cleaned_data[name] for name in ("provider", "number"))
            # It is recorded before anything is sent, without the number.
            action = "provider.test" if sends else "provider.check"
            staff_record(request, action, "provider", provider)
            result, form = provider_call(provider, number), _fresh_form(provider)
    context = {"providers": registry.provider_states(), "form": form, "result": result}
    return operations_page(
        request, "provider", title=_("Provider test"), context=context, status=status
    )


def _fresh_form(provider: str = "") -> TestForm:
    return TestForm(initial={"provider": provider, "once": _new_once()})


def _form_again(posted: TestForm, given: QueryDict) -> TestForm:
    """Return the form with the typed values and their errors, valid for another try."""
    data = given.copy()
    data["once"] = _new_once()
    posted.data = data
    return posted


def _new_once() -> str:
    return signing.dumps(uuid.uuid4().hex, salt=SALT)


def _refusal(once: str) -> str:
    """Return why no test may begin now; otherwise count the test as begun.

    The cache gives each of the limited places to one request only.
    """
    if not cache.add(f"provider-test:{once}", 1, GOOD_FOR_SECONDS):
        return _("This test was made already.")
    places = (f"provider-test-place:{number}" for number in range(TESTS))
    if not any(cache.add(place, 1, WITHIN_SECONDS) for place in places):
        return _("There were many tests just now. Wait a few minutes.")
    return ""


# Shared by the operations pages: their permission and their frame.

RIGHT = "dashboard.operate_server"


def operations_page(
    request: HttpRequest, name: str, *, title: str, context: Mapping[str, Any], status: int = 200
) -> TemplateResponse:
    """Return the page of a tab, from its template in templates/admin/operations/."""
    template = f"admin/operations/{name}.html"
    return unstored(staff_page(request, template, title, {"tab": name, **context}, status=status))


# The meaning of a provider's error, and what to do about it.


BY_CODE = {
    table: {code: Advice(row["what"], row["todo"]) for row in rows for code in row["codes"]}
    for table, rows in read_table(__file__, "provider_words.yaml").items()
}
# Meta's range of missing permissions.
BY_CODE["cloud"].update(dict.fromkeys(range(200, 300), BY_CODE["cloud"][10]))


def advice_for(provider: str, error: whatsapp.SendError, *, sends: bool) -> Advice:
    """Return advice for an error.

    It follows from the provider's code; without one, from how the connection ended. ``sends``: the
    test sent a message, instead of a query.
    """
    known = BY_CODE.get(provider, {}).get(error.code) if error.code is not None else None
    return known or _advice_without_code(error, sends)


def _advice_without_code(error: whatsapp.SendError, sends: bool) -> Advice:
    if error.outcome_unknown:
        kind = "unconfirmed" if sends else "late"
    elif error.code is None and not error.permanent:
        kind = "unreachable"
    else:
        kind = "credentials" if error.alert else "refused"
    return BY_CODE["others"][kind]


def advice_for_state(state: str) -> Advice:
    """Return advice for a Green API instance that isn't authorized."""
    return BY_CODE["states"].get(state) or BY_CODE["others"]["not_ready"]
