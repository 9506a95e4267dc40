"""Typed settings: wrong values name their variable, config.json stands below the environment."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from hypothesis import given, strategies as st

from memoryproject.environment import (
    OF_ENV_FILE,
    Amount,
    Boolean,
    Choice,
    Emails,
    Environment,
    Fraction,
    Hosts,
    Integer,
    Note,
    Prices,
    Setting,
    TimeZone,
    Url,
    WhatsAppIds,
    config_wins_over_env_file,
    read_config_file,
    read_env_file,
    secret_from_file,
)
from memoryproject.launch import write_env_file
from memoryproject.settings_table import OWN_SETTINGS, stray_names
from tests.tables import table

# The example file of the original specification, REQ-CONFIG-001.
EXAMPLE = {
    "feature_flags": {"enable_memory_system": False},
    "godfather_phone": "972501234567@c.us",
    "memory": {
        "session": {
            "storage_dir": "data/sessions",
            "max_tokens_by_role": {"client": 4000, "godfather": 100000},
            "session_timeout_hours": 24,
        },
        "longterm": {
            "enabled": True,
            "storage_dir": "data/memory",
            "collection_name": "godfather_memory",
            "embedding_model": "text-embedding-3-small",
            "top_k_results": 5,
            "min_similarity": 0.7,
        },
    },
}

# A wrong value, and a setting that refuses it.
WRONG: dict[str, Setting] = {
    "maybe": Boolean("", True),
    "1.5": Integer("", 3),
    "-1": Integer("", 3),
    "7": Integer("", 3, maximum=5),
    "1.2": Fraction("", 0.5),
    "nan": Fraction("", 0.5),
    "-2.50": Amount("", None),
    "1e3": Amount("", None),
    "red": Choice("", "blue", ("blue", "green")),
    "ftp://host": Url("", "http://default"),
    "http://host:port": Url("", "http://default"),
    "http://host:70000": Url("", "http://default"),
    "http://[host": Url("", "http://default"),
    "https://example.com": Hosts("", ["localhost"]),
    "example.com:8000": Hosts("", ["localhost"]),
    "example.com/admin": Hosts("", ["localhost"]),
    "Mars/Base": TimeZone("", "UTC"),
    "../../etc/passwd": TimeZone("", "UTC"),
    "0501234567": WhatsAppIds("", frozenset()),
    "the owner": Emails("", []),
    "small=0.15": Prices("", {}),
    "small=-1/2": Prices("", {}),
}


def read(env: Environment, name: str) -> Any:
    return env.read(name, OWN_SETTINGS[name])


@pytest.mark.parametrize(
    "word", ["mysql://me:s3cr@t9@host/x", "redis://me:s3cr#t9@host/x", "me:s3cr:t9@host/x"]
)
def test_the_error_of_a_url_does_not_repeat_its_password(word: str) -> None:
    env = Environment(values={"X": word})
    assert env.read("X", Url("", schemes=("redis",))) == ""
    (error,) = env.errors
    assert "…@host/x" in error
    assert "s3cr" not in error
    assert "t9" not in error


def test_prices_of_models() -> None:
    env = Environment(values={"X": "gpt-4o-mini=0.15/0.60, local/model:7b = 0/0"})
    assert env.read("X", Prices("", {})) == {
        "gpt-4o-mini": (0.15, 0.6),
        "local/model:7b": (0.0, 0.0),
    }
    assert env.errors == []


@pytest.mark.parametrize(("word", "amount"), [("5", 5), ("2.50", 2.5), ("0", 0)])
def test_an_amount_of_money(word: str, amount: float) -> None:
    env = Environment(values={"X": word})
    assert env.read("X", Amount("")) == Decimal(str(amount))
    assert env.errors == []


@table("word", WRONG)
def test_a_wrong_value_names_the_variable_and_the_default_stands_in(word: str) -> None:
    env = Environment(values={"X": word})
    unset = Environment(values={})
    assert env.read("X", WRONG[word]) == unset.read("X", WRONG[word]) == WRONG[word].default
    assert len(env.errors) == 1
    assert env.errors[0].startswith("X ")
    assert word in env.errors[0]
    assert not unset.errors


def test_names_of_hosts() -> None:
    names = ["*", "example.com", ".example.com", "web", "10.0.0.1", "[::1]"]
    env = Environment(values={"X": ", ".join(names)})
    assert env.read("X", Hosts("")) == names
    assert env.errors == []


@table("word", WRONG)
def test_an_empty_value_counts_as_unset(word: str) -> None:
    env = Environment(values={"X": " "})
    assert env.read("X", WRONG[word]) == WRONG[word].default
    assert not env.errors


@given(st.text())
def test_no_value_raises(word: str) -> None:
    for setting in WRONG.values():
        Environment(values={"X": word}).read("X", setting)


@pytest.mark.parametrize(
    ("typed", "ids"),
    [
        ("972501234567", {"972501234567@c.us"}),
        (" +972 50-123-4567 , 1203630@g.us", {"972501234567@c.us", "1203630@g.us"}),
        ("0044 (20) 7946.0123,12@bsuid", {"442079460123@c.us", "12@bsuid"}),
    ],
)
def test_an_owners_number_is_read_as_people_write_it(typed: str, ids: set[str]) -> None:
    assert read(Environment(values={"GODFATHER_PHONE": typed}), "GODFATHER_PHONE") == ids


# Without its country code it could be anybody's.
@table("typed", ["050-1234567", "nobody", "1234567", "972501234567x", "+"])
def test_what_names_no_owner_is_refused(typed: str) -> None:
    env = Environment(values={"GODFATHER_PHONE": typed})
    assert read(env, "GODFATHER_PHONE") == frozenset()
    assert env.errors


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_the_specifications_own_example_file_is_read(tmp_path: Path, encoding: str) -> None:
    """REQ-CONFIG-001, also with the byte order mark of Windows' Notepad."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(EXAMPLE), encoding=encoding)
    notes: list[Note] = []
    env = Environment(values={}, config=read_config_file(path, notes))
    assert read(env, "ENABLE_MEMORY_SYSTEM") is False
    assert read(env, "GODFATHER_PHONE") == {"972501234567@c.us"}
    assert read(env, "CLIENT_MAX_TOKENS") == 4000
    assert read(env, "GODFATHER_MAX_TOKENS") == 100_000
    assert read(env, "SESSION_TIMEOUT_HOURS") == 24
    assert read(env, "LONGTERM_ENABLED") is True
    assert read(env, "RECALL_TOP_K") == 5
    assert read(env, "RECALL_MIN_SIMILARITY") == 0.7
    assert (notes, env.errors, env.notes) == ([], [], [])


@pytest.fixture
def env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of an .env file, whose settings are gone after the test."""
    for name in ("LINES_PLAIN", "LINES_QUOTED", "LINES_SET"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("LINES_SET", "from the environment")
    return tmp_path / ".env"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_settings_of_an_env_file_come_second(env_file: Path, encoding: str) -> None:
    lines = [
        "LINES_PLAIN=a=b",
        "# a comment",
        "  # another",
        "  ",
        "export LINES_QUOTED='c d'",
        "LINES_SET=e",
    ]
    env_file.write_text("\r\n".join(lines), encoding=encoding)
    errors: list[str] = []
    read_env_file(env_file, errors)
    assert errors == []
    assert os.environ["LINES_PLAIN"] == "a=b"
    assert os.environ["LINES_QUOTED"] == "c d"
    assert os.environ["LINES_SET"] == "from the environment"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('"Asia/Jerusalem" # ours', "Asia/Jerusalem"),
        ("'c d'  #ours", "c d"),
        ("a b # ours", "a b"),
        (" # ours", ""),
        ('"a # b" # ours', "a # b"),
        ("a#b", "a#b"),
        ('{"X-Title": "shop # 1"}', '{"X-Title": "shop # 1"}'),
    ],
)
def test_a_comment_behind_a_value_is_no_part_of_it(env_file: Path, line: str, value: str) -> None:
    env_file.write_text(f"LINES_PLAIN={line}\n")
    errors: list[str] = []
    assert read_env_file(env_file, errors) == ["LINES_PLAIN"]
    assert os.environ["LINES_PLAIN"] == value
    assert errors == []


# Names of a file, and the setting that was meant.
MISSPELT = {
    "WHATSAPP_CLOUD_APP_SECERT": "WHATSAPP_CLOUD_APP_SECRET",
    "TURN_DEBOUNCE_SECOND": "TURN_DEBOUNCE_SECONDS",
    "GODFATHHER_PHONE": "GODFATHER_PHONE",
    "CHATMODEL": "CHAT_MODEL",
    "PROT": "PORT",
    "openai_api_key": "OPENAI_API_KEY",
    "OPENAI_KEY": "OPENAI_API_KEY",
    "TELEGRAM_TOKEN": "TELEGRAM_BOT_TOKEN",
    "GODFATHER": "GODFATHER_PHONE",
}


def test_a_misspelt_name_of_the_file_is_known_by_the_nearest_setting() -> None:
    assert stray_names([], MISSPELT) == MISSPELT


def test_of_the_environment_only_slips_are_named() -> None:
    """It is full of names of other programs, which may begin alike."""
    slips = dict(list(MISSPELT.items())[:3])
    others = ["PATH", "HOST", "POST", "debug", "OPENAI_ORGANIZATION", "OPENAI_API_BASE", "LOGNAME"]
    others += ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "DATABASE_PORT", "MEMORY_OF_ENV_FILE"]
    assert stray_names([*slips, *others, *OWN_SETTINGS], []) == slips


def test_what_other_programs_read_may_stand_in_the_file() -> None:
    names = ["HTTPS_PROXY", "TZ", "OTEL_TRACES_SAMPLER", "OPENAI_ORG_ID", "PYTHONPATH"]
    assert stray_names([], names) == {}


def test_lines_of_an_env_file_that_are_no_settings_are_errors(env_file: Path) -> None:
    env_file.write_text("LINES_PLAIN=a\nAPI_KEY: secret\n\n LINES_QUOTED=b\n=c\n")
    errors: list[str] = []
    read_env_file(env_file, errors)
    assert [re.findall(r"Line (\d+) of", error) for error in errors] == [["2"], ["4"], ["5"]]
    assert "secret" not in str(errors)
    assert os.environ["LINES_PLAIN"] == "a"
    assert "LINES_QUOTED" not in os.environ


def test_an_env_file_that_is_unreadable_is_an_error_a_missing_one_is_none(env_file: Path) -> None:
    errors: list[str] = []
    read_env_file(env_file, errors)
    assert errors == []

    env_file.write_bytes(b"LINES_PLAIN=\xff\xfe")
    read_env_file(env_file, errors)
    env_file.unlink()
    env_file.mkdir()
    read_env_file(env_file, errors)
    assert len(errors) == 2
    assert all(f"{env_file} can't be read" in error for error in errors)


def test_the_environment_wins_over_the_file() -> None:
    env = Environment(values={"RECALL_TOP_K": "9"}, config={"RECALL_TOP_K": 5})
    assert read(env, "RECALL_TOP_K") == 9


@pytest.mark.parametrize(
    ("config", "left"),
    [
        ({"GODFATHER_PHONE": "1@c.us"}, {"ENABLE_MEMORY_SYSTEM", "RECALL_TOP_K", "PORT"}),
        ({}, {"RECALL_TOP_K", "PORT"}),
    ],
    ids=["what the file says", "all that a broken one would say"],
)
def test_a_file_named_in_the_environment_wins_over_the_demo_values_of_the_env_file(
    config: dict[str, str], left: set[str]
) -> None:
    """ERR-INTEGRATION-003: a broken file leaves memory off, whatever the demo says."""
    demo = {"GODFATHER_PHONE": "2@c.us", "ENABLE_MEMORY_SYSTEM": "true", "PORT": "8001"}
    values = {**demo, "RECALL_TOP_K": "7"}
    config_wins_over_env_file(values, config, kept={"RECALL_TOP_K"})
    assert set(values) == left


@pytest.mark.parametrize("content", ["{", "[]", "\udcff"])
def test_a_broken_file_is_an_error_in_the_log_and_defaults_count(
    tmp_path: Path, content: str
) -> None:
    """ERR-INTEGRATION-003."""
    path = tmp_path / "config.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    notes: list[Note] = []
    assert read_config_file(path, notes) == {}
    assert [note.level for note in notes] == ["ERROR"]
    assert str(path) in notes[0].text


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('{"feature_flags": 5}', "feature_flags"),
        ('{"feature_flags": {"enable_memory_system": true}, "memory": []}', "memory"),
        ('{"memory": {"session": "x", "longterm": {"top_k_results": 7}}}', "memory.session"),
        ('{"memory": NaN}', "memory"),
    ],
)
def test_a_part_that_is_no_object_breaks_a_file(tmp_path: Path, content: str, place: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)
    notes: list[Note] = []
    assert read_config_file(path, notes) == {}
    assert [note.level for note in notes] == ["ERROR"]
    assert f"{place} must be an object" in notes[0].text
    path.write_text('{"memory": null, "godfather_phone": "1@c.us"}')
    assert read_config_file(path, []) == {"GODFATHER_PHONE": "1@c.us"}


def test_a_missing_file_is_an_error_in_the_log(tmp_path: Path) -> None:
    notes: list[Note] = []
    assert read_config_file(tmp_path / "none.json", notes) == {}
    assert notes[0].level == "ERROR"


def test_a_wrong_value_in_the_file_is_logged_by_its_key_and_does_not_stop() -> None:
    env = Environment(values={}, config={"RECALL_TOP_K": "many"})
    assert read(env, "RECALL_TOP_K") == 5
    assert not env.errors
    assert "memory.longterm.top_k_results" in env.notes[0].text


def test_a_secret_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "secret.key"
    first = secret_from_file(path)
    assert secret_from_file(path) == first
    assert len(first) >= 50
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["secret.key"]


def test_a_secret_in_a_place_that_cannot_be_written_lives_for_the_process(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert len(secret_from_file(blocked / "secret.key")) >= 50


def test_a_refused_value_of_the_file_is_not_the_origin_of_the_default() -> None:
    config = {"RECALL_TOP_K": "many", "CLIENT_MAX_TOKENS": 5000, "GODFATHER_PHONE": "nobody"}
    env = Environment(values={}, config=config)
    assert read(env, "RECALL_TOP_K") == 5
    assert read(env, "CLIENT_MAX_TOKENS") == 5000
    assert read(env, "GODFATHER_PHONE") == frozenset()
    assert {name: env.origin(name, []) for name in config} == {
        "RECALL_TOP_K": "default",
        "CLIENT_MAX_TOKENS": "config.json",
        "GODFATHER_PHONE": "default",
    }


def test_a_run_tells_its_programs_what_is_from_the_file() -> None:
    """They inherit it in their environment, which wins: staff would look for it in vain there."""
    given = {"RECALL_TOP_K": "3", "CLIENT_MAX_TOKENS": "900", OF_ENV_FILE: "RECALL_TOP_K"}
    shown = "from memoryproject.settings import CONFIG_ORIGINS as o; print(o['{}'], o['{}'])"
    printed = subprocess.run(
        [sys.executable, "-c", shown.format("RECALL_TOP_K", "CLIENT_MAX_TOKENS")],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout.split() == [".env", "environment"]


# The file .env that `make run` writes once.


def test_it_is_private_and_is_never_written_again(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    write_env_file(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert "ENABLE_MEMORY_SYSTEM=true" in file.read_text()

    file.write_text("MINE=1")
    write_env_file(file)
    assert file.read_text() == "MINE=1"


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "missing" / ".env"
    with pytest.raises(CommandError, match="can't be written") as refused:
        write_env_file(file)
    assert str(file) in str(refused.value)


def test_a_part_of_it_is_not_left_behind(tmp_path: Path) -> None:
    """A full disk: here, files may have ten bytes."""
    file = tmp_path / ".env"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(CommandError, match="can't be written"):
            write_env_file(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert not file.exists()
