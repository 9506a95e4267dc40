"""Build the dependencies of outgoing webhooks from the settings."""

from datetime import timedelta

from django.conf import settings

from memoryproject.foundation.integrations.network.addresses import AddressRules
from memoryproject.foundation.outgoing_webhooks.sending import WebhookDependencies
from sessions_app.conversations.chat_queries import chat_name


def build_address_rules() -> AddressRules:
    """Return the rules for addresses to which webhooks may be sent."""
    return AddressRules.of(
        settings.WEBHOOKS_PRIVATE_NETWORKS, allow_http=settings.WEBHOOKS_ALLOW_HTTP
    )


def build_webhook_dependencies() -> WebhookDependencies:
    """Return the dependencies of sending webhooks."""
    from memoryproject.foundation.integrations.network.checked_transport import HttpPoster  # noqa: PLC0415 slow

    return WebhookDependencies(
        poster=HttpPoster(build_address_rules()),
        chat_name=chat_name,
        disable_after=timedelta(days=settings.WEBHOOKS_DISABLE_AFTER_DAYS),
    )
