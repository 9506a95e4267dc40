"""The page that tests the providers.

The number that is typed there is used once and not stored: it is in no table, log, session or
message of ours.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin
from django.core import signing
from django.core.cache import cache
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from memoryproject.foundation.audit.audit_events import audit_record, staff_actor
from memoryproject.foundation.process.narrowing import instance
from memoryproject.staff_site.operations.provider_test import (
    Result,
    credentials_check,
    message_send,
    number_read,
    providers_there,
)

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
        there = [(each.name, each.title) for each in providers_there() if each.configured]
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
@require_http_methods(["GET", "HEAD", "POST"])
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
            result = _test(request, posted.cleaned_data, sends=sends)
            form = _fresh_form(provider=posted.cleaned_data["provider"])
    context = {"providers": providers_there(), "form": form, "result": result}
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


def _test(request: HttpRequest, data: dict[str, Any], *, sends: bool) -> Result:
    """Run the test. It is recorded before anything is sent, without the number."""
    provider = data["provider"]
    audit_record(
        action="provider.test" if sends else "provider.check",
        actor=staff_actor(request),
        object_type="provider",
        object_id=provider,
    )
    return message_send(provider, data["number"]) if sends else credentials_check(provider)


# Shared by the operations pages: their permission and their frame.

RIGHT = "dashboard.operate_server"


def operations_page(
    request: HttpRequest,
    name: str,
    *,
    title: str,
    context: Mapping[str, Any],
    status: int = 200,
) -> TemplateResponse:
    """Return the page of a tab, from its template in templates/admin/operations/."""
    shown = {
        **admin.site.each_context(request),
        "title": title,
        "tab": name,
        **context,
    }
    page = TemplateResponse(request, f"admin/operations/{name}.html", shown, status=status)
    page["Cache-Control"] = "no-store"
    return page
