"""The pages of the set-up: each step shows its form and what is known, and leads to the next."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.core.cache import cache
from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters

from memories_app.models import Memory
from memoryproject import checks, folders
from memoryproject.foundation.admin_kit import staff_pages
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from memoryproject.foundation.process.own_address import absolute_url
from memoryproject.staff_site.operations import models_page, provider_test
from memoryproject.staff_site.operations.change_setting import SettingsForm
from memoryproject.staff_site.setup.step_forms import FORMS, PRESETS, CloudForm
from memoryproject.staff_site.setup.steps import TITLES, after, first_open, steps
from sessions_app.inbound.facade import foreign_numbers, handshake_seen, last_message_from
from sessions_app.models import StoredSetting
from sessions_app.stored_settings import is_set_elsewhere, settings_store

PROFILE = "sessions_app.change_assistantprofile"
# The session's mark of a person who was led to the set-up once.
SEEN = "setup_seen"


def setup_page(request: HttpRequest) -> HttpResponseBase:
    """Lead to the first step that isn't done."""
    staff_pages.rights_required(request, provider_test.RIGHT)
    return redirect("admin:setup_step", first_open())


def setup_close(request: HttpRequest) -> HttpResponse:
    """Lead nobody to the set-up any more; its pages stay."""
    staff_pages.rights_required(request, provider_test.RIGHT)
    settings_store(texts={"SHOW_SETUP": "false"}, actor=staff_actor(request))
    text = _("The set-up is closed. You find it again under Operations, at Current settings.")
    messages.success(request, text)
    return redirect("admin:index")


@sensitive_post_parameters()
def setup_step(request: HttpRequest, step: str) -> HttpResponseBase:
    """Show a step, or take what was typed there."""
    staff_pages.rights_required(request, provider_test.RIGHT)
    if step not in TITLES:
        raise Http404
    request.session[SEEN] = True
    form = _form(request, step)
    if request.method == "POST":
        if step == "business":
            staff_pages.rights_required(request, PROFILE)
        if step == "model" and request.POST.get("do") == "offline":
            return _answer_offline(request)
        if form is None:
            raise Http404
        if form.store(request):
            return _stored(request, step, form)
    context = {
        "step": step,
        "steps": steps(),
        "next_step": after(step),
        "form": form,
        "may_profile": request.user.has_perm(PROFILE),
        **_beside(request, step, form),
    }
    status = form.status if form else 200
    template = f"admin/setup/{step}.html"
    return staff_pages.unstored(
        staff_pages.staff_page(request, template, TITLES[step], context, status=status)
    )


def _form(request: HttpRequest, step: str) -> SettingsForm | None:
    """Return the step's form, with what was posted; None for a step without one."""
    if step == "whatsapp":
        chosen = request.POST.get("provider") or request.GET.get("provider")
        step = chosen if chosen in PROVIDERS else settings.WHATSAPP_PROVIDER
        step = step if step in PROVIDERS else "cloud"
    return FORMS[step](request.POST or None) if step in FORMS else None


def _stored(request: HttpRequest, step: str, form: SettingsForm) -> HttpResponse:
    if step == "model":
        models_page.check_begin(request)
    if isinstance(form, CloudForm):
        messages.success(request, _("Saved. Now give the provider our address."))
        response = redirect("admin:setup_step", step)
        response["Location"] += f"?provider={form.provider}"
        return response
    messages.success(request, _("Saved."))
    return redirect("admin:setup_step", step if step in ("model", "owner") else after(step))


def _answer_offline(request: HttpRequest) -> HttpResponse:
    """Let the assistant answer from memory alone."""
    if not is_set_elsewhere("CHAT_MODEL"):
        settings_store(texts={"CHAT_MODEL": ""}, actor=staff_actor(request))
    return redirect("admin:setup_step", after("model"))


def _beside(request: HttpRequest, step: str, form: SettingsForm | None) -> dict[str, Any]:
    """Return what a step's page shows beside its form."""
    if step == "owner":
        return {"owners": sorted(settings.GODFATHER_PHONE)}
    if step == "model":
        report = cache.get(models_page.LAST_CHECK)
        return {
            "presets": PRESETS,
            "in_use": settings.CHAT_MODEL == "openai",
            "report": report,
            "waits": report is None or report.is_running,
        }
    if isinstance(form, CloudForm):
        return _whatsapp(request, form)
    if step == "facts":
        return {"memories": Memory.objects.count(), "memory_on": settings.ENABLE_MEMORY_SYSTEM}
    if step == "end":
        left = [each for each in steps() if not each.done and each.name != "end"]
        return {"commands": folders.TYPED, "left": left}
    return {}


def _whatsapp(request: HttpRequest, form: CloudForm) -> dict[str, Any]:
    record = PROVIDERS[form.provider]
    address = absolute_url(reverse(f"webhook-{form.provider}"), request)
    host = urlsplit(address).hostname or ""
    ours = StoredSetting.objects.filter(name__in=(form.token, record.number_setting))
    since = ours.aggregate(since=Max("changed_at"))["since"]
    seen, message = handshake_seen(form.provider), last_message_from(form.provider)
    if since is not None:
        # Those for another number don't count, such as the demo's.
        seen = seen if seen and seen > since else None
        message = message if message and message[0] > since else None
    known = seen if record.handshake else message
    configured = all(getattr(settings, name) for name in record.needed)
    return {
        "record": record,
        # A template would call it.
        "has_handshake": record.handshake is not None,
        "providers": PROVIDERS.values(),
        "address": address,
        "reachable": request.is_secure() and checks.is_public(host),
        "configured": configured,
        # Not needed any more once it is pasted there.
        "token": "" if known or is_set_elsewhere(form.token) else getattr(settings, form.token),
        "token_name": form.token,
        "token_set": bool(getattr(settings, form.token)),
        "handshake": seen,
        "message": message,
        "foreign": foreign_numbers(since=timezone.now() - timedelta(days=1)),
        "waits": configured and not message,
    }


SETUP_PAGES = {
    "setup": staff_pages.OwnPage("setup/", setup_page, "GET HEAD"),
    "setup_close": staff_pages.OwnPage("setup/close/", setup_close, "POST"),
    "setup_step": staff_pages.OwnPage("setup/<str:step>/", setup_step, "GET HEAD POST"),
}
