"""The form of a webhook endpoint."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django import forms
from django.db import transaction
from django.utils.translation import gettext as _, gettext_lazy

from memoryproject.foundation.admin_kit.stamped_form import ConflictCheckedForm
from memoryproject.foundation.outgoing_webhooks.endpoints import EndpointError, endpoint_check
from memoryproject.foundation.outgoing_webhooks.models import EVENT_TYPES, WebhookEndpoint
from memoryproject.foundation.rest_kit.tokens import TokenError
from sessions_app.conversations.chat_queries import check_chats, token_chats
from sessions_app.models import Chat
from sessions_app.webhook_endpoints.dependencies import build_address_rules


class ChatsField(forms.CharField):
    """Addresses of chats, one a line."""

    widget = forms.Textarea(attrs={"rows": 3, "dir": "ltr"})

    def to_python(self, value: Any) -> Any:
        return value if isinstance(value, list) else str(super().to_python(value)).split()

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value


class EndpointForm(ConflictCheckedForm):
    event_types = forms.MultipleChoiceField(
        choices=lambda: [(name, f"{name}: {text}") for name, text in EVENT_TYPES.items()],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Events"),
        help_text=gettext_lazy("None: everything, also what later versions tell."),
    )
    chats = ChatsField(
        label=gettext_lazy("Chats"),
        required=False,
        help_text=gettext_lazy(
            "Limit it to these chats, one per line, such as 15550100123@c.us. "
            "Leave empty for all chats."
        ),
    )

    class Meta:
        model = WebhookEndpoint
        fields = ("name", "url", "event_types", "enabled")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].help_text = ""
        self.fields["url"].help_text = _("Where it is posted: https://…")
        if self.instance.pk:
            self.fields["chats"].initial = _names(self.instance)

    def clean(self) -> dict[str, Any]:
        """Report in the form what the service would refuse, before anything is created."""
        cleaned = super().clean() or {}
        try:
            hook_chats_check(cleaned.get("chats", []))
            if "url" in cleaned and "name" in cleaned:
                # An unchanged URL was checked when it was entered; each delivery checks it again.
                endpoint_check(
                    name=cleaned["name"],
                    url=cleaned["url"],
                    event_types=cleaned.get("event_types", []),
                    chat_ids=None,
                    rules=build_address_rules(),
                    resolve="url" in self.changed_data,
                )
        except EndpointError as error:
            self.add_error(error.field, str(error))
        return cleaned

    def guard(self) -> None:
        """Lock chats before endpoints, in the same order as merging chats does.

        New chats exist only after saving.
        """
        with transaction.atomic():
            if "chats" in self.changed_data:
                hook_chats(self.cleaned_data["chats"])
            super().guard()
            transaction.set_rollback(bool(self.errors))


def _names(endpoint: WebhookEndpoint) -> list[str]:
    chats = Chat.objects.filter(pk__in=endpoint.chat_ids or [])
    return sorted(chats.values_list("whatsapp_chat", flat=True))


# The chats to which an endpoint is bound.


def hook_chats(whatsapp_chats: Iterable[str]) -> list[UUID] | None:
    """Return the ids of these chats; None if none is named.

    New chats are created, as for tokens. Raises EndpointError.
    """
    names = list(whatsapp_chats)
    hook_chats_check(names)
    return token_chats(names) if names else None


def hook_chats_check(whatsapp_chats: Iterable[str]) -> None:
    """Check the names of chats. Raises EndpointError for an invalid one."""
    try:
        check_chats(whatsapp_chats)
    except TokenError as error:
        raise EndpointError(str(error), "chats") from error
