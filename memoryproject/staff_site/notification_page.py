"""The page on which members of staff choose what they are notified of, and how."""

import re
from typing import Any
from uuid import uuid4
from zoneinfo import available_timezones

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _, gettext_lazy

from memoryproject.foundation.admin_kit.staff_pages import staff_page
from memoryproject.foundation.audit.audit_events import staff_record
from memoryproject.foundation.errors.stored_errors import error_text, translate_error
from memoryproject.foundation.integrations.network.addresses import AddressError, url_checked
from memoryproject.foundation.staff_notices import Kind
from memoryproject.staff_site.models import Channel, Notification, NotificationSettings, PushDevice
from memoryproject.staff_site.notification_channels import (
    Line,
    NotSentError,
    lines_send,
    missing,
    page_url,
    push_public_key,
)
from memoryproject.staff_site.notification_delivery import settings_of
from sessions_app.webhook_endpoints.dependencies import build_address_rules

TELEGRAM_CHAT = re.compile(r"-?[0-9]{1,20}|@[A-Za-z0-9_]{4,32}")


def _public(url: str) -> None:
    """Refuse addresses in private networks. Raises ValidationError."""
    try:
        url_checked(url, build_address_rules())
    except AddressError as error:
        raise forms.ValidationError(translate_error(error_text(error))) from None


class DeviceForm(forms.Form):
    """What a browser says of its subscription: the keys are base64 of 65 and 16 bytes."""

    endpoint = forms.CharField(max_length=1000, validators=[_public])
    p256dh = forms.RegexField(r"^[A-Za-z0-9_-]{87}=?$")
    auth = forms.RegexField(r"^[A-Za-z0-9_-]{22}(==)?$")
    name = forms.CharField(max_length=64, empty_value="–", required=False)


class NotificationForm(forms.ModelForm):  # type: ignore[type-arg]
    wanted = forms.MultipleChoiceField(
        choices=[(f"{kind}:{each}", "") for kind in Kind.values for each in Channel.values],
        required=False,
    )
    webhook_url = forms.CharField(
        label=gettext_lazy("address"), max_length=2000, validators=[_public], required=False
    )
    time_zone = forms.ChoiceField(
        label=gettext_lazy("time zone"),
        choices=[(name, name) for name in sorted(available_timezones())],
    )

    class Meta:
        model = NotificationSettings
        fields = [
            "wanted",
            "rhythm",
            "telegram_chat",
            "webhook_url",
            "quiet_from",
            "quiet_until",
            "time_zone",
        ]

    def clean_telegram_chat(self) -> str:
        typed: str = self.cleaned_data["telegram_chat"]
        if typed and not TELEGRAM_CHAT.fullmatch(typed):
            raise ValidationError(_("It is a number, or the @name of a channel."))
        return typed

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = super().clean() or {}
        begin, end = found.get("quiet_from"), found.get("quiet_until")
        if begin != end and None in (begin, end) or (begin and begin == end):
            self.add_error("quiet_until", _("Quiet hours have a beginning and another end."))
        return found


def notifications_page(request: HttpRequest) -> HttpResponse:
    """Show and store what a person is told of and how; send a test by one channel."""
    user: Any = request.user
    doing, _colon, what = request.POST.get("do", "").partition(":")
    person = settings_of(user)
    form = NotificationForm(request.POST or None, instance=person)
    if doing == "subscribe":
        _subscribe(request)
    elif doing == "remove":
        user.push_devices.filter(pk=what if what.isdecimal() else 0).delete()
    elif not form.is_valid():
        return _page(request, person, form)
    else:
        person.language = translation.get_language() or person.language
        form.save()
        fields = sorted(form.changed_data)
        staff_record(request, "user.notifications", "user", user.pk, fields=fields)
        messages.success(request, _("The notifications were saved."))
        if doing == "test" and what in Channel.values:
            _test(request, person, Channel(what))
    return HttpResponseRedirect(reverse("admin:notifications"))


def _page(request: HttpRequest, person: NotificationSettings, form: Any) -> HttpResponse:
    tried = Notification.objects.filter(user=person.user, due_at=None)
    newest = tried.order_by("target", "-created_at").distinct("target")
    errors = {row.target.partition(":")[0]: row.error for row in newest}
    channels = map(Channel, Channel.values)
    context = {
        "form": form,
        "kinds": Kind,
        "chosen": form["wanted"].value() or (),
        "channels": [(each, missing(each, person), errors.get(each)) for each in channels],
        "devices": person.user.push_devices.all(),
        "push_key": push_public_key(),
    }
    return staff_page(request, "admin/access/notifications.html", _("Notifications"), context)


def _test(request: HttpRequest, person: NotificationSettings, channel: Channel) -> None:
    """Send a test, and tell its result in words."""
    why = missing(channel, person)
    line = Line(uuid4(), "test", _("This is a test."), "", page_url(reverse("admin:notifications")))
    devices = [f"push:{each.pk}" for each in person.user.push_devices.all()]
    try:
        for target in devices if channel == Channel.PUSH else [str(channel)]:
            if not why:
                lines_send(person, target, [line])
    except NotSentError as error:
        why = translate_error(error_text(error))
    tell, result = messages.error if why else messages.success, why or _("the test was sent.")
    tell(request, f"{channel.label}: {result}")


def _subscribe(request: HttpRequest) -> None:
    """Let this browser take pushes. One that another person used before is theirs no more."""
    form = DeviceForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("The browser's push service can't be used."))
        return
    device = {**form.cleaned_data, "user": request.user}
    PushDevice.objects.update_or_create(endpoint=device["endpoint"], defaults=device)
    messages.success(request, _("Pushes are on in this browser."))
