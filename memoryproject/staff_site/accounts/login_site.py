"""The login of the admin site, and the pages of a person's own account."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.admin.forms import AdminAuthenticationForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from unfold.forms import AdminOwnPasswordChangeForm

from memoryproject.staff_site.accounts.login import PasswordStep, code_step
from memoryproject.staff_site.accounts.own_pages import OwnPassword, second_factor_page


class AccessSite(AdminSite):
    """The login part of the site. It must come before the site's other base class."""

    def get_urls(self) -> list[Any]:
        own: list[URLPattern] = [
            path("login/code/", self.login_code, name="login_code"),
            path("account/two-factor/", self.admin_view(self.two_factor), name="two_factor"),
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

    @method_decorator(never_cache)
    @method_decorator(sensitive_post_parameters("code"))
    def login_code(self, request: HttpRequest) -> HttpResponse:
        """Handle the second step, the code."""
        return code_step(request, self.each_context(request))

    def two_factor(self, request: HttpRequest) -> HttpResponse:
        return second_factor_page(request, self.each_context(request))

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
