"""The providers that send nothing away."""

import pytest

from memoryproject.foundation.integrations.whatsapp.base import (
    ConsoleProvider,
    Recipient,
    WhatsAppProvider,
)

TO = Recipient(whatsapp_chat="15550100123@c.us", phone="15550100123")


def test_console_writes_nothing_of_the_answer(capfd: pytest.CaptureFixture[str]) -> None:
    """A worker's output is a log, which no forgetting reaches."""
    provider: WhatsAppProvider = ConsoleProvider()

    first = provider.send_text(to=TO, text="שלום", callback_id="1")
    second = provider.send_text(to=TO, text="again", callback_id="2")
    provider.mark_read(provider_message_id="x")

    assert capfd.readouterr() == ("", "")
    assert first.provider_message_id != second.provider_message_id
