"""The settings' documents say what the code does."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from docs.setting_files import example, page_with_defaults
from memoryproject.environment import CONFIG_KEYS, Environment, read_env_file
from memoryproject.settings_table import OWN_SETTINGS
from tests.docs.sources import EXAMPLE, PROJECT, read


def test_the_page_and_the_example_are_what_the_table_says() -> None:
    """If this fails: `make settings`."""
    page = read("docs/configuration.md")
    assert page == page_with_defaults(page)
    assert read(".env.example") == example(page)


def test_a_setting_that_is_not_described_is_named() -> None:
    page = read("docs/configuration.md").replace("| `PORT` |", "| `HARBOUR` |")
    with pytest.raises(SystemExit, match="HARBOUR.*PORT|PORT.*HARBOUR"):
        page_with_defaults(page)


def test_a_copy_of_the_example_only_switches_memory_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `make run` does without one; each default reads as itself."""
    monkeypatch.delenv("ENABLE_MEMORY_SYSTEM")
    (tmp_path / ".env").write_text(read(".env.example"), encoding="utf-8")
    errors: list[str] = []
    assert read_env_file(tmp_path / ".env", errors) == ["ENABLE_MEMORY_SYSTEM"]
    assert os.environ["ENABLE_MEMORY_SYSTEM"] == "true"
    assert errors == []

    env = Environment(values=dict(EXAMPLE.findall(read(".env.example"))))
    for name in OWN_SETTINGS.keys() - {"ENABLE_MEMORY_SYSTEM"}:
        assert env.read(name, OWN_SETTINGS[name]) == OWN_SETTINGS[name].default, name
    assert env.errors == []


def test_the_config_file_table_maps_every_key_that_is_read() -> None:
    mapped = re.findall(
        r"^\| `([a-z][a-zA-Z_.]+)` \| `([A-Z_]+)`", read("docs/configuration.md"), re.M
    )
    assert {setting: key for key, setting in mapped} == CONFIG_KEYS


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
