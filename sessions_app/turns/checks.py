"""A system check of our accounts at the WhatsApp providers, by what they said last."""

import sys
from typing import Any

from django.core.checks import CheckMessage, Warning, register
from django.db import DatabaseError, connection
from django.utils.timezone import localtime

from memoryproject.foundation.embedded_postgres.backend.base import DATA_DIR_OPTION, server_of
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS


@register("accounts")
def accounts_are_accepted(**_: Any) -> list[CheckMessage]:
    """Warn of each provider that refuses our account. No provider is asked, no server started.

    Only `manage.py check` looks into the database: other commands may have nothing to do with it.
    """
    if sys.argv[1:2] != ["check"]:
        return []
    options = connection.settings_dict.get("OPTIONS", {})
    if DATA_DIR_OPTION in options and not server_of(connection.settings_dict).is_running():
        return []
    from sessions_app.turns.accounts import accounts_refused  # noqa: PLC0415 slow

    try:
        refused = accounts_refused()
    except DatabaseError:
        # No tables yet, or no database; other checks report that.
        return []
    return [
        Warning(
            ErrorText(
                "account_refused",
                service=PROVIDERS[provider].title,
                since=f"{localtime(refusal.since):%Y-%m-%d %H:%M}",
                number=refusal.waiting,
                why=refusal.why,
            ),
            hint=ErrorText("account_refused_hint", setting=PROVIDERS[provider].key_setting),
            id="memory.W022",
        )
        for provider, refusal in refused.items()
    ]
