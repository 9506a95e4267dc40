"""Ends idle sessions, and requires a second factor where it is mandatory."""

import re
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _, ngettext

from memoryproject.foundation.admin_kit.staff_pages import is_live
from memoryproject.staff_site.accounts.second_factor import Standing, keep_alive, standing_of

# A browser asks for the app's files by itself: that is no activity of a person.
APP_FILES = ("/admin/manifest.webmanifest", "/admin/worker.js")
WITHOUT_SESSIONS = ("/webhooks/", "/healthz", "/readyz", *APP_FILES)
# Pages that can be opened before a second factor is set up.
ALLOWED_BEFORE = ("admin:two_factor", "admin:logout", "admin:jsi18n")
# Forms of who isn't logged in.
OPEN = ("admin:login", "admin:login_code", "admin:logout", "set_language")
# A form's text is kept in the browser until this cookie names the token that was sent with it.
SAVED_COOKIE = "staff-saved"
DRAFT_TOKEN = re.compile(r"[0-9a-f-]{4,64}")


class StaffSessions:
    """Checks the sessions of staff.

    The API accepts logged-in staff, too: there, a request with an invalid session is anonymous.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(WITHOUT_SESSIONS):
            # A cookie must not cost a query there: anybody can send one.
            return self.get_response(request)
        of_admin = request.path.startswith(reverse("admin:index"))
        answer: HttpResponseBase | None = None
        if settings.SESSION_COOKIE_NAME in request.COOKIES and request.user.is_authenticated:
            answer = self._answer(request, standing_of(request), of_admin=of_admin)
        elif of_admin and is_live(request):
            answer = _nobody()
        elif of_admin and request.method == "POST" and request.path not in map(reverse, OPEN):
            # Before the check of the form's token, which fails without the login's cookies.
            answer = HttpResponseRedirect(_login_address(request, request.get_full_path()))
        answer = answer or self.get_response(request)
        return _finished(request, answer) if of_admin else answer

    def _answer(
        self, request: HttpRequest, standing: Standing, *, of_admin: bool
    ) -> HttpResponseBase | None:
        """Return None if the request may continue, perhaps as an anonymous one."""
        if standing is Standing.GOOD:
            if request.headers.get("X-Staff", str(request.user.pk)) != str(request.user.pk):
                # The page belongs to who was logged in before.
                return _nobody()
            keep_alive(request)
            return None
        if standing is Standing.TO_SET_UP:
            if of_admin:
                return _to_set_up(request)
            request.user = AnonymousUser()
            return None
        logout(request)
        if not of_admin:
            return None
        if is_live(request):
            return _nobody()
        messages.info(request, _why(standing))
        return HttpResponseRedirect(_login_address(request, reverse("admin:index")))


def _finished(request: HttpRequest, answer: HttpResponseBase) -> HttpResponseBase:
    """Keep the page out of the browser's memory; say which text was stored, and where to go on."""
    is_page = answer.get("Content-Type", "").startswith("text/html")
    if is_page and not answer.has_header("Cache-Control"):
        patch_cache_control(answer, private=True, no_store=True)
    if request.method != "POST" or not isinstance(answer, HttpResponseRedirect):
        return answer
    if not request.user.is_authenticated or answer.url.startswith(reverse("admin:login")):
        return answer
    token = request.POST.get("draft_token", "")
    if DRAFT_TOKEN.fullmatch(token):
        place, safe = reverse("admin:index"), settings.SESSION_COOKIE_SECURE
        answer.set_cookie(SAVED_COOKIE, token, path=place, secure=safe, samesite="Lax")
    return answer


def _nobody() -> JsonResponse:
    return JsonResponse({"detail": _("You are logged out.")}, status=401)


def _why(standing: Standing) -> str:
    if standing is Standing.UNPROVED:
        return _("Log in again: this account has a second factor by now.")
    minutes: int = settings.STAFF_SESSION_MINUTES
    if minutes % 60:
        return ngettext(
            "You were logged out after %(count)d minute without activity.",
            "You were logged out after %(count)d minutes without activity.",
            minutes,
        ) % {"count": minutes}
    return ngettext(
        "You were logged out after %(count)d hour without activity.",
        "You were logged out after %(count)d hours without activity.",
        minutes // 60,
    ) % {"count": minutes // 60}


def _login_address(request: HttpRequest, fallback: str) -> str:
    """Return the login's address, with the way back to the page.

    After a POST it leads to the page with the form, which the browser names, or to ``fallback``.
    """
    is_page = request.method == "GET"
    back = request.get_full_path() if is_page else _page_before(request, fallback)
    return f"{reverse('admin:login')}?{urlencode({'next': back})}"


def _page_before(request: HttpRequest, fallback: str) -> str:
    before = request.headers.get("Referer", "")
    place = urlsplit(before)
    ours = url_has_allowed_host_and_scheme(before, allowed_hosts={request.get_host()})
    if not ours or not place.path.startswith(reverse("admin:index")):
        return fallback
    return f"{place.path}?{place.query}" if place.query else place.path


def _to_set_up(request: HttpRequest) -> HttpResponseBase | None:
    keep_alive(request)
    if request.path in map(reverse, ALLOWED_BEFORE):
        return None
    if request.method != "GET" or is_live(request):
        raise PermissionDenied
    return HttpResponseRedirect(reverse("admin:two_factor"))
