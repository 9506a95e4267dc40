"""Changed settings are told by name, once, and never with a value."""

from __future__ import annotations

import pytest
from django.conf import settings

from memoryproject.foundation.audit.models import AuditEvent, AuditSetting
from memoryproject.foundation.audit.tasks import note_settings, settings_note, tracked_values
from tests.threads import in_threads

KEY = "the key of a test"
VALUES = {
    "OPENAI_API_KEY": "'sk-secret'",
    "GODFATHER_PHONE": "['15550199999@c.us']",
    "DEBUG": "False",
}


def told() -> list[dict[str, object]]:
    events = AuditEvent.objects.filter(action="setting.change").order_by("id")
    return list(events.values_list("details", flat=True))


def test_every_setting_is_watched_but_those_that_concern_no_data() -> None:
    # AUDIT_KEY is detected by its fingerprint, ADMIN_PASSWORD is used once, and the values of
    # MEMORY_CONFIG are those of other settings.
    assert settings.OWN_SETTINGS.keys() - tracked_values(settings).keys() == {
        *("ADMIN_PASSWORD", "AUDIT_KEY", "DATA_DIR", "LOG_FORMAT", "MEMORY_CONFIG", "PORT")
    }


@pytest.mark.django_db
def test_the_names_of_changed_settings_are_told_once() -> None:
    assert settings_note(key=KEY, values=VALUES) == []
    assert settings_note(key=KEY, values=VALUES) == []
    changed = {**VALUES, "OPENAI_API_KEY": "'sk-other'", "DEBUG": "True"}
    assert settings_note(key=KEY, values=changed) == ["DEBUG", "OPENAI_API_KEY"]
    assert settings_note(key=KEY, values=changed) == []
    assert told() == [{"first_start": True}, {"names": ["DEBUG", "OPENAI_API_KEY"]}]


@pytest.mark.django_db
def test_no_value_is_kept() -> None:
    settings_note(key=KEY, values=VALUES)
    settings_note(key=KEY, values={**VALUES, "OPENAI_API_KEY": "'sk-other'"})
    kept = str([*AuditSetting.objects.values_list(), *AuditEvent.objects.values_list()])
    for secret in ("sk-secret", "sk-other", "15550199999", KEY):
        assert secret not in kept
    assert len(set(AuditSetting.objects.values_list("fingerprint", flat=True))) == 4


@pytest.mark.django_db
def test_another_key_is_the_change_itself() -> None:
    settings_note(key=KEY, values=VALUES)
    assert settings_note(key="another", values=VALUES) == ["AUDIT_KEY"]
    assert settings_note(key="another", values=VALUES) == []


@pytest.mark.django_db(transaction=True)
def test_processes_that_start_together_tell_it_once() -> None:
    settings_note(key=KEY, values=VALUES)
    in_threads(lambda: settings_note(key=KEY, values={**VALUES, "DEBUG": "True"}), 6)
    assert told()[1:] == [{"names": ["DEBUG"]}]


@pytest.mark.django_db
def test_the_settings_of_this_process_are_noted() -> None:
    note_settings()
    assert note_settings() == []
    assert AuditSetting.objects.count() == len(tracked_values(settings)) + 1
