"""The storage of files of messages, as the settings choose it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.checks import ERROR

from memoryproject import checks
from memoryproject.foundation.integrations.media_storage.bucket import BucketStorage
from memoryproject.foundation.integrations.media_storage.storage_choice import (
    configured_media_storage,
)
from memoryproject.staff_site.operations.settings_in_force import value_shown
from tests.loopback.s3_server import S3Server
from tests.programs import python


def check(folder: Path, *, hidden: str = "nothing", **environment: str) -> Any:
    """What `manage.py check` says in a Python in which a package can't be found."""
    code = (
        f"import sys; sys.modules[{hidden!r}] = None\n"
        "from django.core.management import execute_from_command_line\n"
        "execute_from_command_line(['manage.py', 'check'])\n"
        "assert not sys.modules.get('boto3'), 'slow to import'"
    )
    return python("-c", code, folder=folder, check=False, **environment)


@pytest.mark.processes
def test_without_packages_the_start_says_how_to_install(tmp_path: Path) -> None:
    ended = check(tmp_path, hidden="storages", MEDIA_STORAGE="s3://files")
    assert ended.returncode != 0
    assert "the packages for S3 are not installed (storages)" in ended.stderr
    assert "pip install --require-hashes --no-deps -r requirements-s3.txt" in ended.stderr


@pytest.mark.processes
def test_a_folder_needs_no_package(tmp_path: Path) -> None:
    ended = check(tmp_path, hidden="boto3")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.processes
def test_a_bucket_is_checked_without_being_asked(tmp_path: Path) -> None:
    ended = check(
        tmp_path, MEDIA_STORAGE="s3://files/a", MEDIA_S3_ENDPOINT_URL="http://127.0.0.1:9"
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.processes
def test_another_kind_of_address_is_refused(tmp_path: Path) -> None:
    ended = check(tmp_path, MEDIA_STORAGE="gs://files")
    assert ended.returncode != 0
    assert "MEDIA_STORAGE must be a URL that starts with s3://" in ended.stderr


def test_half_a_key_is_an_error(settings: Any) -> None:
    settings.MEDIA_STORAGE = "s3://files"
    settings.MEDIA_S3_ACCESS_KEY_ID = "AKIDEXAMPLE"
    (found,) = checks.buckets_have_their_packages()
    assert (found.id, found.level) == ("memory.E009", ERROR)
    settings.MEDIA_S3_SECRET_ACCESS_KEY = "secret"
    assert checks.buckets_have_their_packages() == []
    settings.MEDIA_STORAGE = ""
    assert checks.buckets_have_their_packages() == []


def test_the_settings_choose_the_place(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    assert configured_media_storage().incoming == tmp_path / "media"
    settings.MEDIA_STORAGE = "s3://files"
    bucket = configured_media_storage()
    assert bucket.incoming == tmp_path / "media-incoming"
    # The connections of one are used again.
    assert configured_media_storage() is bucket


def test_a_key_of_the_environment_is_not_mixed_with_ours(
    db: None, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a token of another key")
    monkeypatch.setenv("AWS_S3_SESSION_PROFILE", "another")
    settings.DATA_DIR = tmp_path
    with S3Server() as server:
        settings.MEDIA_STORAGE = f"s3://{server.bucket}"
        settings.MEDIA_S3_ENDPOINT_URL = server.url
        settings.MEDIA_S3_REGION = server.region
        settings.MEDIA_S3_ACCESS_KEY_ID = server.key_id
        settings.MEDIA_S3_SECRET_ACCESS_KEY = server.secret
        storage = configured_media_storage()
        assert not storage.has("a")
        assert "x-amz-security-token" not in server.requests[0].headers
        assert isinstance(storage, BucketStorage)
        assert server.secret not in repr(storage.bucket)


def test_staff_do_not_see_the_secret() -> None:
    shown = value_shown("MEDIA_S3_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    assert "wJal" not in shown
    assert "pass" not in value_shown("MEDIA_S3_ENDPOINT_URL", "https://me:pass@s3.example.com")
