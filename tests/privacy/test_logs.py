"""No log holds what people said, also where the database quotes it in an error."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from django.conf import settings
from django.db import DatabaseError, transaction
from django.utils import timezone

from memoryproject.foundation.process.logfile import ContentlessFormatter, PrivateFileHandler
from sessions_app.models import Message
from tests.world import CLIENT, World

SAID = "My cousin keeps three parrots\n\non the balcony"


def formatted(record: logging.LogRecord) -> str:
    return ContentlessFormatter("%(message)s").format(record)


def test_a_quoted_row_is_not_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.say(CLIENT, SAID)
    logger = logging.getLogger("tests")
    with pytest.raises(DatabaseError, match="parrots") as caught, transaction.atomic():
        # A revoked message has no text: the database refuses, and quotes the row.
        Message.objects.filter(content=SAID).update(revoked_at=timezone.now())
    logger.error("It failed.", exc_info=caught.value)
    logger.error("It failed: %s", caught.value)
    with_trace, without = (record for record in caplog.records if record.name == "tests")

    for record in (with_trace, without):
        text = formatted(record)
        assert "revoked_text_is_gone" in text
        assert "parrots" not in text
        assert "balcony" not in text
    assert "Traceback" in formatted(with_trace)
    assert "direct cause" in formatted(with_trace)


def test_personal_data_and_secrets_are_redacted_and_ids_stay() -> None:
    ids = (
        "turn 3f2b8c1e-0000-4000-8000-000000000000 of wamid.HBgLMTU1NTAxMDAxMjMVAgAR from "
        "192.168.10.24 at 2026-11-28T01:02:03.123456+00:00, version 1.2.3"
    )
    told = "+44 7700 900123, dana@shop.example, https://api.example/v1?token=9f8e7d6c5b4a"
    try:
        raise ValueError(told)
    except ValueError as error:
        made = logging.LogRecord("a", logging.ERROR, "", 1, "%s: %s", (ids, error), None)
        made.exc_info = (ValueError, error, error.__traceback__)
    text = formatted(made)
    assert text.startswith(f"{ids}: [phone], [email], [url]\nTraceback")
    assert text.endswith("ValueError: [phone], [email], [url]")
    # Other handlers get the record as it was.
    assert told in made.getMessage()
    assert made.exc_text is None


def test_the_settings_use_that_formatter() -> None:
    for handler in settings.LOGGING["handlers"].values():
        named = settings.LOGGING["formatters"][handler["formatter"]]
        assert named["()"].endswith("logfile.ContentlessFormatter")
    written = [handler for handler in logging.getLogger().handlers if handler.name]
    assert {type(handler.formatter) for handler in written} == {ContentlessFormatter}


def test_a_full_disk_stops_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    file = tmp_path / "memory.log"
    file.symlink_to(full)
    handler = PrivateFileHandler(str(file), delay=True, encoding="utf-8")
    logger = logging.Logger("tests.full")
    logger.addHandler(handler)

    # The first record is left in the buffer, which the second one writes before it reopens.
    for _ in range(3):
        logger.error("It goes on.")
    (said, *more) = set(capsys.readouterr().err.splitlines())
    assert "No space left on device" in said
    assert more == []

    # The file that the first records still wait for, and the one that is opened instead of it.
    with (tmp_path / "before").open("w") as space:
        assert handler.stream is not None
        os.dup2(space.fileno(), handler.stream.fileno())
    file.unlink()
    logger.error("There is space again.")
    handler.close()
    assert "It goes on." in (tmp_path / "before").read_text(encoding="utf-8")
    assert file.read_text(encoding="utf-8") == "There is space again.\n"
