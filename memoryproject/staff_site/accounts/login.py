"""The login: the password, then a code for users with a second factor; the forms of both."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth import get_user_model, login
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_otp.plugins.otp_totp.models import TOTPDevice

from memoryproject.staff_site.accounts.lockout import failure_count, lock_holds
from memoryproject.staff_site.accounts.second_factor import Checked, code_check
from memoryproject.staff_site.accounts.sessions import device_of, prove

HALF_WAY = "half_way"
HALF_WAY_SECONDS = 300
BACKEND = "django.contrib.auth.backends.ModelBackend"


class CodeForm(forms.Form):
    """A code of the app, or a backup code."""

    code = forms.CharField(
        label=gettext_lazy("Code"),
        max_length=64,
        widget=forms.TextInput(
            attrs={
                "autocomplete": "one-time-code",
                "autofocus": True,
                "autocapitalize": "none",
                "spellcheck": "false",
                "dir": "ltr",
            }
        ),
    )


class PasswordForm(forms.Form):
    """The user's own password once more: a person who finds an open session doesn't know it."""

    password = forms.CharField(
        label=gettext_lazy("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "dir": "ltr"}),
    )


class ProofForm(PasswordForm, CodeForm):
    """The password and a code, for actions that would lower the protection."""

    field_order = ("password", "code")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["code"].widget.attrs["autofocus"]


class PasswordStep(LoginView):
    """Checks the password. A user with a second factor isn't logged in by it alone."""

    def form_valid(self, form: Any) -> HttpResponse:
        user = form.get_user()
        if device_of(user) is None:
            return super().form_valid(form)
        session = self.request.session
        # Data of an earlier user or a planted session key must not be carried over.
        session.flush()
        session[HALF_WAY] = {
            "user": user.pk,
            "password": user.get_session_auth_hash(),
            "at": int(timezone.now().timestamp()),
            "next": self.get_success_url(),
        }
        return HttpResponseRedirect(reverse("admin:login_code"))


def code_step(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """Handle the second step. ``context``: the context of every page of the site."""
    half_way = request.session.get(HALF_WAY)
    user = _who(half_way)
    if user is None or half_way is None:
        request.session.pop(HALF_WAY, None)
        messages.info(request, _("Begin with your name and password."))
        return HttpResponseRedirect(reverse("admin:login"))
    form = CodeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        checked = code_checked(request, user, form.cleaned_data["code"])
        if checked.device is not None:
            return _come_in(request, user, checked.device, half_way["next"])
        form.add_error("code", refusal_of(checked))
    return TemplateResponse(
        request,
        "admin/access/login_code.html",
        {**context, "title": _("Log in"), "form": form, "name": user.get_username()},
    )


def _who(half_way: dict[str, Any] | None) -> Any:
    """Return the user who typed the right password recently; None if that has expired."""
    now = timezone.now().timestamp()
    if half_way is None or now - half_way["at"] > HALF_WAY_SECONDS:
        return None
    user = get_user_model()._default_manager.filter(pk=half_way["user"]).first()
    if user is None or not user.is_active or not user.is_staff:
        return None
    same = constant_time_compare(user.get_session_auth_hash(), half_way["password"])
    return user if same else None


def code_checked(request: HttpRequest, user: Any, code: str) -> Checked:
    """Check a code. A wrong one is a failed login; during a lock none is checked."""
    name = user.get_username()
    if lock_holds(request, name):
        return Checked()
    checked = code_check(user=user, code=code)
    if checked.device is None and checked.wait_until is None:
        failure_count(request, name, "code")
    return checked


def _come_in(request: HttpRequest, user: Any, device: TOTPDevice, address: str) -> HttpResponse:
    del request.session[HALF_WAY]
    login(request, user, backend=BACKEND)
    prove(request, device)
    return HttpResponseRedirect(address)


def refusal_of(checked: Checked) -> str:
    """Return the message about why a code was rejected."""
    if checked.wait_until is None:
        return _("This code is wrong, or it was used already.")
    seconds = max(1, int((checked.wait_until - timezone.now()).total_seconds()) + 1)
    return _("Too many wrong codes. Try again in %(seconds)d seconds.") % {"seconds": seconds}
