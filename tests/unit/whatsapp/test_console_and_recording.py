"""The providers that send nothing away."""

import pytest

from memoryproject.foundation.integrations.whatsapp.base import (
    ConsoleProvider,
    Recipient,
    SendError,
    WhatsAppProvider,
)
from memoryproject.foundation.integrations.whatsapp.recording import RecordingProvider

TO = Recipient(whatsapp_chat="15550100123@c.us", phone="15550100123")


def test_console_writes_nothing_of_the_answer(capfd: pytest.CaptureFixture[str]) -> None:
    """A worker's output is a log, which no forgetting reaches."""
    provider: WhatsAppProvider = ConsoleProvider()

    first = provider.send_text(to=TO, text="שלום", callback_id="1")
    second = provider.send_text(to=TO, text="again", callback_id="2")
    provider.mark_read(provider_message_id="x")

    assert capfd.readouterr() == ("", "")
    assert first.provider_message_id != second.provider_message_id


def test_recording_keeps_what_was_sent() -> None:
    provider = RecordingProvider(name="cloud", text_limit=10)

    result = provider.send_text(to=TO, text="hello", callback_id="turn-1", reply_to="m1")
    provider.mark_read(provider_message_id="m1", to=TO, typing=False)

    [sent] = provider.sent
    assert (sent.to, sent.text, sent.callback_id, sent.reply_to) == (TO, "hello", "turn-1", "m1")
    assert sent.provider_message_id == result.provider_message_id
    assert [mark.provider_message_id for mark in provider.read] == ["m1"]
    assert (provider.name, provider.text_limit) == ("cloud", 10)


def test_recording_fails_as_told() -> None:
    provider = RecordingProvider()
    provider.fail_next(SendError("busy"))
    provider.fail_next(SendError("lost", outcome_unknown=True), carried_out=True)

    with pytest.raises(SendError, match="busy"):
        provider.send_text(to=TO, text="one", callback_id="1")
    with pytest.raises(SendError, match="lost"):
        provider.send_text(to=TO, text="two", callback_id="2")
    provider.send_text(to=TO, text="three", callback_id="3")

    assert [sent.text for sent in provider.sent] == ["two", "three"]
    assert provider.attempts == 3
