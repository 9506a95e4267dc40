"""The login of the admin site: password, then code; and the pages of a person's own account."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import get_user_model, login
from django.contrib.auth.views import LoginView, PasswordChangeView
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django_otp.plugins.otp_totp.models import TOTPDevice
from unfold.forms import AdminOwnPasswordChangeForm

from memoryproject.foundation.admin_kit.staff_pages import staff_page
from memoryproject.foundation.audit.audit_events import staff_actor, staff_record
from memoryproject.staff_site.accounts import second_factor
from memoryproject.staff_site.accounts.lockout import failure_count, lock_holds

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
        if second_factor.device_of(user) is None:
            login(self.request, user)
            return HttpResponseRedirect(_first_page(user, self.get_success_url()))
        session = self.request.session
        # Data of an earlier user or a planted session key must not be carried over.
        session.flush()
        session[HALF_WAY] = {
            "user": user.pk,
            "password": user.get_session_auth_hash(),
            "at": int(timezone.now().timestamp()),
            "next": _first_page(user, self.get_success_url()),
        }
        return HttpResponseRedirect(reverse("admin:login_code"))


def _first_page(user: Any, address: str) -> str:
    """Return where a login leads: who replies begins with the inbox, who leads with Home."""
    replies = user.has_perm("sessions_app.takeover_chat")
    if address != reverse("admin:index") or not replies or user.has_perm("auth.view_user"):
        return address
    return reverse("admin:sessions_app_chat_changelist")


@never_cache
@sensitive_post_parameters("code")
def code_step(request: HttpRequest) -> HttpResponse:
    """Handle the second step, the code."""
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
    context = {"form": form, "name": user.get_username()}
    return staff_page(request, "admin/access/login_code.html", _("Log in"), context)


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


def code_checked(request: HttpRequest, user: Any, code: str) -> second_factor.Checked:
    """Check a code. A wrong one is a failed login; during a lock none is checked."""
    name = user.get_username()
    if lock_holds(request, name):
        return second_factor.Checked()
    checked = second_factor.code_check(user=user, code=code)
    if checked.device is None and checked.wait_until is None:
        failure_count(request, name, "code")
    return checked


def _come_in(request: HttpRequest, user: Any, device: TOTPDevice, address: str) -> HttpResponse:
    del request.session[HALF_WAY]
    login(request, user, backend=BACKEND)
    second_factor.prove(request, device)
    return HttpResponseRedirect(address)


def refusal_of(checked: second_factor.Checked) -> str:
    """Return the message about why a code was rejected."""
    if checked.wait_until is None:
        return _("This code is wrong, or it was used already.")
    seconds = max(1, int((checked.wait_until - timezone.now()).total_seconds()) + 1)
    return _("Too many wrong codes. Try again in %(seconds)d seconds.") % {"seconds": seconds}


# The site's addresses, and the pages of a person's own account.


class AccessSite(AdminSite):
    """The login part of the site. It must come before the site's other base class."""

    def get_urls(self) -> list[Any]:
        own: list[URLPattern] = [
            path("login/code/", code_step, name="login_code"),
            path("account/two-factor/", self.admin_view(second_factor_page), name="two_factor"),
        ]
        return [*own, *super().get_urls()]

    @method_decorator(never_cache)
    @method_decorator(sensitive_post_parameters("password"))
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Handle the first step, the password, at the URL of Django's login."""
        if request.method == "GET" and self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index", current_app=self.name))
        context = {
            **self.each_context(request),
            "title": _("Log in"),
            "subtitle": None,
            "app_path": request.get_full_path(),
            "username": request.user.get_username(),
            **(extra_context or {}),
        }
        if "next" not in request.GET and "next" not in request.POST:
            context["next"] = reverse("admin:index", current_app=self.name)
        request.current_app = self.name
        return PasswordStep.as_view(
            extra_context=context,
            authentication_form=self.login_form or AdminAuthenticationForm,
            template_name=self.login_template or "admin/login.html",
            next_page=reverse("admin:index", current_app=self.name),
        )(request)

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        request.current_app = self.name
        return OwnPassword.as_view(
            form_class=AdminOwnPasswordChangeForm,
            success_url=reverse("admin:password_change_done", current_app=self.name),
            template_name=self.password_change_template or "registration/password_change_form.html",
            extra_context={
                **self.each_context(request),
                "title": _("Change password"),
                **(extra_context or {}),
            },
        )(request)


# The pages on which staff manage their own account: second factor and password.


BEGIN, CONFIRM, CODES, REMOVE = "begin", "confirm", "codes", "remove"
BEGUN = "second_factor_begun"
BEGUN_SECONDS = 900


@sensitive_post_parameters("code", "password")
@never_cache
def second_factor_page(request: HttpRequest) -> HttpResponse:
    """Handle the page of the second factor."""
    doing = request.POST.get("do", "") if request.method == "POST" else ""
    has_one = second_factor.device_of(request.user) is not None
    if doing == BEGIN and not has_one:
        return _begin(request)
    if doing == CONFIRM and not has_one:
        return _confirm(request)
    if doing in (CODES, REMOVE) and has_one:
        return _with_proof(request, doing)
    return _page(request)


def _begin(request: HttpRequest) -> HttpResponse:
    """Begin a second factor after the password was typed.

    Otherwise a person who finds an open session could lock out its owner with another phone.
    """
    form = PasswordForm(request.POST)
    if not form.is_valid() or not _knows_password(request, form):
        return _page(request, **{BEGIN: form})
    device = second_factor.second_factor_begin(user=request.user)
    request.session[BEGUN] = {"device": device.pk, "at": int(timezone.now().timestamp())}
    return _here()


def _begun_here(request: HttpRequest) -> TOTPDevice | None:
    """Return the device that waits for its first code, if this session began it recently.

    The session in which the password was typed is the only one that shows the secret and accepts a
    code for it.
    """
    device, begun = second_factor.begun_of(request.user), request.session.get(BEGUN)
    if device is None or begun is None or begun["device"] != device.pk:
        return None
    return device if timezone.now().timestamp() - begun["at"] <= BEGUN_SECONDS else None


def _confirm(request: HttpRequest) -> HttpResponse:
    if _begun_here(request) is None:
        messages.info(request, _("Start over: this was too long ago, or done elsewhere."))
        return _here()
    form = CodeForm(request.POST)
    if form.is_valid():
        codes = second_factor.second_factor_confirm(
            user=request.user, code=form.cleaned_data["code"]
        )
        device = second_factor.device_of(request.user)
        if codes is not None and device is not None:
            second_factor.prove(request, device)
            return _codes_page(request, codes)
        form.add_error("code", _("This code is wrong. Is the clock of the phone right?"))
    return _page(request, confirm=form)


def _with_proof(request: HttpRequest, doing: str) -> HttpResponse:
    """Renew the backup codes or remove the second factor, after a proof of both factors."""
    form = ProofForm(request.POST)
    if not form.is_valid() or not _proved(request, form):
        return _page(request, **{doing: form})
    if doing == CODES:
        return _codes_page(request, second_factor.backup_codes_renew(user=request.user))
    second_factor.second_factor_remove(user=request.user, actor=staff_actor(request))
    messages.success(request, _("The second factor was removed."))
    return _here()


def _proved(request: HttpRequest, form: ProofForm) -> bool:
    """Return whether password and code are right. A wrong password uses up no code."""
    if not _knows_password(request, form):
        return False
    checked = code_checked(request, request.user, form.cleaned_data["code"])
    if checked.device is None:
        form.add_error("code", refusal_of(checked))
    return checked.device is not None


def _knows_password(request: HttpRequest, form: PasswordForm) -> bool:
    name = request.user.get_username()
    if lock_holds(request, name):
        return False
    if not request.user.check_password(form.cleaned_data["password"]):
        failure_count(request, name, "password")
        form.add_error("password", _("The password is wrong."))
        return False
    return True


def _page(request: HttpRequest, **forms: Any) -> HttpResponse:
    device = second_factor.device_of(request.user)
    begun = _begun_here(request) if device is None else None
    shown = {
        "device": device,
        "codes_left": second_factor.backup_codes_left(request.user) if device else 0,
        "qr_code": second_factor.qr_code(begun) if begun else None,
        "secret": second_factor.secret_shown(begun) if begun else "",
        "begin_form": forms.get(BEGIN) or PasswordForm(),
        "confirm_form": forms.get(CONFIRM) or CodeForm(),
        "codes_form": forms.get(CODES) or ProofForm(auto_id="codes_%s"),
        "remove_form": forms.get(REMOVE) or ProofForm(auto_id="remove_%s"),
    }
    return staff_page(request, "admin/access/second_factor.html", _("Two-factor login"), shown)


def _codes_page(request: HttpRequest, codes: list[str]) -> HttpResponse:
    """Show the backup codes. This is the only time that they are shown."""
    template, title = "admin/access/backup_codes.html", _("Backup codes")
    return staff_page(request, template, title, {"codes": codes})


def _here() -> HttpResponse:
    return HttpResponseRedirect(reverse("admin:two_factor"))


class OwnPassword(PasswordChangeView):
    """The password change, which logs out all other sessions of the person.

    Django ends the sessions. Wrong old passwords count as failed logins, so that a person who finds
    an open session can't guess.
    """

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if lock_holds(request, request.user.get_username()):
            return self.get(request, *args, **kwargs)
        return super().post(request, *args, **kwargs)

    def form_invalid(self, form: Any) -> HttpResponse:
        if form.has_error("old_password", "password_incorrect"):
            failure_count(self.request, self.request.user.get_username(), "password")
        return super().form_invalid(form)

    @transaction.atomic
    def form_valid(self, form: Any) -> HttpResponse:
        answer = super().form_valid(form)
        staff_record(self.request, "user.password", "user", self.request.user.pk)
        return answer
