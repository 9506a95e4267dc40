"""The parts that staff's pages share: frame, rights, confirmation, late parts, own refreshing."""

import logging
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.middleware.csrf import get_token
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone, translation
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_http_methods

from memoryproject.foundation.process.storage import STORAGE_FULL, is_caused_by_full_disk
from memoryproject.foundation.replica import REPLICA, from_replica, read_alias

LIVE, PANE = "live", "pane"


class OwnPage(NamedTuple):
    """A page of staff beside those of Django. ``view``: a function, or the name of a method.

    ``methods``: those that it answers; any, if there are none.
    """

    route: str
    view: str | Callable[..., Any]
    methods: str = ""


def page_paths(
    site: admin.AdminSite, pages: Mapping[str, OwnPage], *, of: object = None, prefix: str = ""
) -> list[URLPattern]:
    """Return the URLs of pages by their names, which begin with ``prefix``.

    ``of``: whose methods they name.
    """
    found = []
    for name, page in pages.items():
        view = getattr(of, page.view) if isinstance(page.view, str) else page.view
        if page.methods:
            view = require_http_methods(page.methods.split())(view)
        found.append(path(page.route, site.admin_view(view), name=f"{prefix}{name}"))
    return found


def staff_page(
    request: HttpRequest,
    template: str,
    title: Any,
    context: Mapping[str, Any],
    *,
    of: type[Model] | None = None,
    status: int = 200,
) -> TemplateResponse:
    """Return a page in the frame of the admin site. ``of``: the model whose menu entry it has.

    ``template``: its path, or the name alone of one in the folder of ``of``.
    """
    frame = {**admin.site.each_context(request), "title": title}
    if of is not None:
        frame["opts"] = of._meta
        if "/" not in template:
            template = f"admin/{of._meta.app_label}/{of._meta.model_name}/{template}.html"
        pages: Any = admin.site._registry.get(of)
        frame["list_title"] = getattr(pages, "list_title", "")
        if "original" in context:
            frame["crumb"] = pages.row_name(request, context["original"])
    return TemplateResponse(request, template, {**frame, **context}, status=status)


def unstored(page: TemplateResponse) -> TemplateResponse:
    """Keep a page that shows a secret, or the state of this moment, out of every cache."""
    page["Cache-Control"] = "no-store"
    return page


def rights_required(request: HttpRequest, *rights: str) -> None:
    """Raise PermissionDenied unless the user has these rights."""
    if not request.user.has_perms(rights):
        raise PermissionDenied


def is_live(request: HttpRequest) -> bool:
    """Return whether the page itself sent the request, not a person.

    Such requests carry ``X-Requested-With: live`` (or ``X-Live``) and don't keep a session alive.
    Any client can send a header: new texts that are read are recorded nevertheless.
    """
    return request.headers.get("X-Requested-With", "") == LIVE or "X-Live" in request.headers


def in_pane(request: HttpRequest) -> bool:
    """Return whether staff asked for the part of a page that another page shows beside its own."""
    return request.headers.get("X-Requested-With", "") == PANE


def page_back(request: HttpRequest, otherwise: str) -> str:
    """Return the page of the posted form, which it names in ``next``, if it is one of ours."""
    page = request.POST.get("next", "")
    here = url_has_allowed_host_and_scheme(page, {request.get_host()}, request.is_secure())
    return page if here and page.startswith(reverse("admin:index")) else otherwise


# The page that asks staff to confirm an irreversible action on the chosen rows.

SHOWN = 100


def is_confirmed(request: HttpRequest) -> bool:
    return "confirmed" in request.POST


def confirmation(
    request: HttpRequest,
    queryset: QuerySet[Any],
    *,
    chosen: Sequence[Any],
    action: str,
    title: str,
    button: str,
    consequence: str,
) -> TemplateResponse:
    """Return the page. It names the first SHOWN of the chosen rows.

    ``consequence`` is a sentence; the button posts ``action`` again, confirmed.
    """
    context = {
        "action": action,
        "button": button,
        "consequence": consequence,
        "count": len(chosen),
        "objects": queryset[:SHOWN],
        "chosen": chosen,
        "selected": ACTION_CHECKBOX_NAME,
    }
    template = "admin/confirm_selected.html"
    return staff_page(request, template, title, context, of=queryset.model)


# Pages that send their beginning at once and a slow part later, without a script.

logger = logging.getLogger(__name__)
FAILED = "admin/late_failed.html"


def late_page(
    request: HttpRequest,
    template: str,
    context: dict[str, Any],
    *,
    late: Callable[[], tuple[str, dict[str, Any]]],
    status: int = 200,
) -> StreamingHttpResponse:
    """Return a page whose ``{{ late }}`` part is sent when it is ready.

    ``template`` shows ``{{ late }}`` where the slow part belongs. ``late`` computes it: it returns
    the name of its own template and the values added to ``context``. Its elements are in
    ``class="late"``, after one that says what is being loaded. If it fails, the page says so and is
    complete nevertheless.
    """
    # The page is split at this text; nobody else can write it.
    place = f"<!--{secrets.token_hex(16)}-->"
    # A form in the late part needs the cookie, which is sent with the first part.
    get_token(request)
    shown = {**context, "late": mark_safe(place)}  # noqa: S308 a comment of hexadecimal digits
    before, _, after = render_to_string(template, shown, request).partition(place)
    language, zone = translation.get_language(), timezone.get_current_timezone()
    may_be_replica = read_alias() == REPLICA

    def looked_up() -> str:
        name, more = late()
        return render_to_string(name, {**context, **more}, request)

    def rendered() -> str:
        # The middleware that sets these has finished when this runs.
        with translation.override(language), timezone.override(zone):
            try:
                return (from_replica(looked_up) if may_be_replica else None) or looked_up()
            except Exception as error:
                logger.exception("A part of %s could not be made.", request.path)
                full = is_caused_by_full_disk(error, settings.DATA_DIR)
                why = translation.gettext(STORAGE_FULL) if full else ""
                return render_to_string(FAILED, {"why": why}, request)

    def parts() -> Iterator[str]:
        yield before
        yield rendered()
        yield after

    # A proxy that buffers the whole response would undo the early start.
    headers = {"X-Accel-Buffering": "no"}
    return StreamingHttpResponse(parts(), status=status, headers=headers)
