"""The settings' documents say what the code does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memoryproject.environment import CONFIG_KEYS
from tests.docs.sources import (
    PROJECT,
    documented_defaults,
    example_defaults,
    read,
    settings_read,
)

SHOW = """
import json
from django.conf import settings
names = {names!r}
shown = {{name: getattr(settings, name) for name in names}}
print(json.dumps(shown, default=lambda value: sorted(map(str, value))
    if isinstance(value, (set, frozenset)) else str(value)))
"""


def test_every_setting_that_is_read_is_documented_and_no_other() -> None:
    assert settings_read() == set(documented_defaults())


def test_the_example_file_lists_every_setting_and_no_other() -> None:
    assert settings_read() == set(example_defaults())


def test_both_documents_give_the_same_defaults() -> None:
    assert documented_defaults() == example_defaults()


@pytest.fixture(scope="module")
def real_defaults(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The settings of a process that has none in its environment, but for the folders."""
    folder = tmp_path_factory.mktemp("defaults")
    names = sorted(settings_read() - {"DATA_DIR", "LOG_DIR", "MEMORY_CONFIG"})
    # An empty value counts as unset, and wins over a developer's .env.
    unset = dict.fromkeys(settings_read(), "")
    folders = {"DATA_DIR": str(folder / "data"), "LOG_DIR": str(folder / "logs")}
    shown = subprocess.run(
        [sys.executable, "-c", SHOW.format(names=names)],
        env={
            **os.environ,
            **unset,
            **folders,
            "DJANGO_SETTINGS_MODULE": "memoryproject.settings",
        },
        cwd=PROJECT,
        capture_output=True,
        check=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(shown.stdout)
    return found


MADE_ONCE = {"SECRET_KEY", "AUDIT_KEY", "BACKUP_KEY"}


@pytest.mark.processes
def test_the_documented_defaults_are_the_real_ones(real_defaults: dict[str, Any]) -> None:
    documented = documented_defaults()
    for name, value in real_defaults.items():
        if name in MADE_ONCE:
            assert documented[name] == ""
            assert value, f"{name} is made when it is unset"
        else:
            assert documented[name] == _written(value), name


def _written(value: Any) -> str:
    """A setting's value as one writes it in the environment."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, (list, dict)) else str(value)


def test_the_config_file_table_maps_every_key_that_is_read() -> None:
    mapped = re.findall(
        r"^\| `([a-z][a-zA-Z_.]+)` \| `([A-Z_]+)`", read("docs/configuration.md"), re.M
    )
    assert {setting: key for key, setting in mapped} == {
        name: ".".join(keys) for name, keys in CONFIG_KEYS.items()
    }


def test_the_example_of_seed_002_has_no_key_that_the_table_leaves_out() -> None:
    seeds = sorted((PROJECT.parent / "shared" / "seeds").glob("002*"))
    if not seeds:
        pytest.skip("../shared isn't here")
    for key in _keys_of_example(seeds[0]):
        assert f"| `{key}` |" in read("docs/configuration.md"), key


def _keys_of_example(seed: Path) -> list[str]:
    """The dotted names of the values in the seed's config.json."""
    text = seed.read_text(encoding="utf-8").partition("Configuration File Structure")[2]
    found = re.search(r"```json\n(.*?)```", text, re.DOTALL)
    assert found, "the seed's example"

    def walk(value: Any, path: tuple[str, ...]) -> list[str]:
        if isinstance(value, dict):
            return [name for key, part in value.items() for name in walk(part, (*path, key))]
        return [".".join(path)]

    return walk(json.loads(found[1]), ())
