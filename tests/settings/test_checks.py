"""What stops a start that can't go well (DEP-001, DEP-004, EDGE-007)."""

from __future__ import annotations

import logging
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import CRITICAL, ERROR, WARNING
from django.db import connection

from memoryproject import checks
from tests.programs import python


def test_dep_001_an_old_python_stops_the_start() -> None:
    found = checks.python_problems((3, 9))
    assert found[0].level == CRITICAL
    assert "Python 3.10" in found[0].msg
    assert checks.python_problems((3, 10)) == checks.python_problems((3, 13)) == []
    assert checks.python_problems((3, 14))[0].level == WARNING


def test_edge_007_a_folder_that_cannot_be_written_stops_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with caplog.at_level(logging.CRITICAL):
        found = checks.folder_problems("DATA_DIR", blocked / "data", "data")
    assert found[0].level == CRITICAL
    assert found[0].msg == "FATAL: Cannot access data directory. Check file permissions."
    assert "DATA_DIR" in (found[0].hint or "")
    assert caplog.records[0].levelname == "CRITICAL"


def test_dep_004_a_folder_is_made_private_and_a_full_disk_is_warned_of(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert checks.folder_problems("DATA_DIR", folder, "data") == []
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.iterdir()) == []
    assert checks.space_problems(folder, free=lambda _: 2 * 1024**3) == []
    assert checks.space_problems(folder, free=lambda _: 5 * 1024**2)[0].level == WARNING


def test_a_chosen_provider_needs_all_its_settings(settings: Any) -> None:
    settings.WHATSAPP_PROVIDER = "green"
    settings.GREEN_API_TOKEN = "token"
    found = checks.providers_are_whole()
    assert found[0].level == ERROR
    assert "GREEN_API_ID_INSTANCE, GREEN_API_WEBHOOK_TOKEN" in found[0].msg
    settings.WHATSAPP_PROVIDER = "console"
    assert checks.providers_are_whole() == []


def test_openai_needs_a_key_and_a_compatible_server_does_not(settings: Any) -> None:
    settings.CHAT_MODEL = "openai"
    assert "OPENAI_API_KEY" in checks.models_are_reachable_by_settings()[0].msg
    settings.OPENAI_BASE_URL = "http://127.0.0.1:8080/v1"
    assert checks.models_are_reachable_by_settings() == []


def test_listening_through_openai_needs_a_key(settings: Any) -> None:
    settings.TRANSCRIPTION_MODEL = "whisper-1"
    (found,) = checks.models_are_reachable_by_settings()
    assert found.msg == "TRANSCRIPTION_MODEL is set, but OPENAI_API_KEY is not set."
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9000/v1"
    assert checks.models_are_reachable_by_settings() == []


def test_a_budget_needs_the_price_of_the_model(settings: Any) -> None:
    settings.CLIENTS_DAILY_BUDGET, settings.MODEL_PRICES = Decimal("2.50"), {}
    settings.CHAT_MODEL, settings.OPENAI_MODEL = "openai", "gpt-4o-mini-2024-07-18"
    (message,) = checks.budget_can_be_counted()
    assert (message.id, message.level) == ("memory.E006", ERROR)
    assert "MODEL_PRICES has no price of gpt-4o-mini-2024-07-18" in message.msg
    settings.MODEL_PRICES = {"gpt-4o-mini": (0.15, 0.6)}
    assert checks.budget_can_be_counted() == []
    settings.COMPARISON_MODELS = ["gpt-4o-mini", "unpriced"]
    (message,) = checks.budget_can_be_counted()
    assert "MODEL_PRICES has no price of unpriced" in message.msg
    settings.CHAT_MODEL, settings.MODEL_PRICES = "offline", {}
    assert checks.budget_can_be_counted() == []


def test_a_group_is_no_godfather(settings: Any) -> None:
    settings.GODFATHER_PHONE = frozenset({"1203@g.us"})
    assert checks.groups_are_no_godfathers()[0].level == WARNING


def test_wrong_settings_are_told_by_the_check(settings: Any) -> None:
    settings.CONFIG_ERRORS = ["RECALL_TOP_K must be a whole number from 1 to 100; it is 'x'."]
    assert checks.settings_are_valid()[0].level == ERROR


def test_a_misspelt_setting_is_named_with_the_nearest(settings: Any) -> None:
    settings.CONFIG_UNKNOWN = {"OPENAI_KEY": "OPENAI_API_KEY"}
    (found,) = checks.names_are_known()
    assert (found.level, found.id) == (WARNING, "memory.W025")
    assert (
        found.msg == "OPENAI_KEY is no setting of this server; the nearest one is OPENAI_API_KEY."
    )
    assert ".env.example" in (found.hint or "")


@pytest.mark.processes
def test_a_misspelt_setting_of_the_environment_is_named_by_the_check(tmp_path: Path) -> None:
    done = python("manage.py", "check", folder=tmp_path, WHATSAPP_CLOUD_APP_SECERT="s3cr3t")
    assert "nearest one is WHATSAPP_CLOUD_APP_SECRET" in done.stderr
    assert "s3cr3t" not in done.stderr


@pytest.mark.parametrize("password", ["123", "short-one", "password1234"])
def test_a_weak_password_stops_a_server_that_others_reach(password: str, settings: Any) -> None:
    """By the rules of the accounts of the pages; elsewhere it is warned of."""
    settings.ADMIN_PASSWORD = password
    (found,) = checks.admin_password_is_strong()
    assert (found.level, found.id) == (WARNING, "memory.W026")
    assert found.msg.startswith("ADMIN_PASSWORD is weak. This password is too")
    assert password not in found.msg
    assert "openssl rand" in (found.hint or "")
    settings.ALLOWED_HOSTS = ["memory.example.com"]
    assert [found.level for found in checks.admin_password_is_strong()] == [ERROR]


@pytest.mark.parametrize("password", ["", "a-password-of-tests"])
def test_a_strong_password_or_none_is_no_matter(password: str, settings: Any) -> None:
    settings.ADMIN_PASSWORD = password
    settings.ALLOWED_HOSTS = ["memory.example.com"]
    assert checks.admin_password_is_strong() == []


@pytest.mark.processes
def test_err_integration_002_a_missing_flag_means_off_with_a_warning(tmp_path: Path) -> None:
    """ERR-INTEGRATION-002: said at every start, and the memory system is off."""
    code = "from django.conf import settings; print(settings.ENABLE_MEMORY_SYSTEM)"
    shell = ("manage.py", "shell", "-v", "0", "-c", code)
    done = python(*shell, folder=tmp_path, ENABLE_MEMORY_SYSTEM="")
    assert done.stdout.strip() == "False"
    assert "WARNING" in done.stderr
    assert "ENABLE_MEMORY_SYSTEM is not set: the memory system is disabled." in done.stderr


@pytest.mark.parametrize(
    ("host", "public"),
    [
        ("localhost", False),
        ("127.0.0.1", False),
        ("[::1]", False),
        ("192.168.1.20", False),
        ("10.0.0.5", False),
        ("web", False),
        ("memory.local", False),
        ("8.8.8.8", True),
        ("[2606:4700:4700::1111]", True),
        ("memory.example.com", True),
        (".example.com", True),
        ("*", True),
    ],
)
def test_a_public_host_without_https_is_warned_of(host: str, public: bool, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["localhost", host]
    settings.HTTPS_ONLY = False
    assert [found.id for found in checks.address_fits_https()] == ["memory.W020"] * public
    settings.HTTPS_ONLY = True
    assert checks.address_fits_https() == []


@pytest.mark.parametrize("name", ["AUDIT_KEY", "BACKUP_KEY"])
def test_a_short_key_stops_the_start(name: str, settings: Any) -> None:
    setattr(settings, name, "מפתח" * 4)
    assert checks.keys_are_long_enough() == [], "32 bytes"
    setattr(settings, name, "x" * 31)
    (found,) = checks.keys_are_long_enough()
    assert (found.level, found.msg) == (ERROR, f"{name} has 31 bytes; a key needs at least 32.")
    assert "openssl rand -hex 32" in (found.hint or "")


def test_a_short_secret_key_stops_only_a_server_that_others_reach(settings: Any) -> None:
    settings.SECRET_KEY = "x" * 31
    assert [found.level for found in checks.keys_are_long_enough()] == [WARNING]
    settings.ALLOWED_HOSTS = ["localhost", "memory.example.com"]
    assert [found.level for found in checks.keys_are_long_enough()] == [ERROR]


@pytest.mark.parametrize(
    ("environment", "secure"),
    [
        # Without HTTPS_ONLY: tests/settings/test_base_url.py.
        ({"TRUSTED_PROXIES": "1", "HTTPS_ONLY": "false"}, False),
        ({"HTTPS_ONLY": "true"}, True),
    ],
)
def test_cookies_are_secure_behind_a_proxy(
    environment: dict[str, str], secure: bool, tmp_path: Path
) -> None:
    names = ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "LANGUAGE_COOKIE_SECURE")
    code = f"from django.conf import settings; print([getattr(settings, n) for n in {names}])"
    shown = python("-c", code, folder=tmp_path, check=True, **environment)
    assert shown.stdout.strip() == str([secure] * 3)


# What each connection to the database is set to.


@pytest.mark.django_db
def test_no_connection_compiles_statements_although_the_server_would() -> None:
    fresh = connection.copy()
    fresh.settings_dict["OPTIONS"] = {**fresh.settings_dict["OPTIONS"], "options": "-c jit=on"}
    try:
        with fresh.cursor() as cursor:
            cursor.execute("SELECT setting, reset_val FROM pg_settings WHERE name = 'jit'")
            assert cursor.fetchone() == ("off", "on")
    finally:
        fresh.close()
