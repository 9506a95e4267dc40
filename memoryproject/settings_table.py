"""All settings, read from ``settings_table.yaml``.

`settings.py`, `.env.example`, the tables of docs/configuration.md and the page *Current settings*
are made from these rows; `make settings` writes the two files.
"""

from collections.abc import Collection, Iterable
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from memoryproject import base_url, environment
from memoryproject.environment import Setting
from memoryproject.foundation.tables import read_table


class SettingGroup(NamedTuple):
    """The settings of one purpose, by name, with their heading for staff."""

    title: Any
    settings: dict[str, Setting]


def _setting(*, kind: str = "Setting", **row: Any) -> Setting:
    kinds = {"BaseUrl": base_url.BaseUrl, **vars(environment)}
    setting: Setting = kinds[kind](**row)
    return setting


GROUPS = {
    key: SettingGroup(
        group["title"], {name: _setting(**row) for name, row in group["settings"].items()}
    )
    for key, group in read_table(__file__, "settings_table.yaml").items()
}
OWN_SETTINGS = {name: row for group in GROUPS.values() for name, row in group.settings.items()}
CHANGEABLE = {name for name, row in OWN_SETTINGS.items() if row.changeable}
# Names that libraries read.
OF_LIBRARIES = ("OTEL_", "HTTPS_PROXY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_LOG")


def stray_names(given: Iterable[str], file: Collection[str]) -> dict[str, str]:
    """Return the names that are no settings but were surely meant as one, with the nearest setting.

    Those have a letter too many, missing, wrong or swapped; in the ``file`` also short
    ones, in any case of letters, and those that begin with the same word as a setting.
    """
    found = {}
    # Short names of the environment may be those of anything.
    long_names = {name for name in given if len(name) >= 12}
    for name in sorted(long_names.union(file).difference(OWN_SETTINGS)):
        words = (name.upper() if name in file else name).split("_")
        nearest = [each for each in OWN_SETTINGS if _is_misspelt("_".join(words), each)]
        if name in file and not (nearest or name.startswith(OF_LIBRARIES)):
            nearest = [each for each in OWN_SETTINGS if each.split("_")[0] == words[0]]
        if nearest:
            found[name] = max(nearest, key=lambda each: len({*words}.intersection(each.split("_"))))
    return found


def _is_misspelt(name: str, other: str) -> bool:
    """Return whether one letter differs, or two are swapped."""
    # Comparing takes long.
    if abs(len(name) - len(other)) > 1 or len(set(name) ^ set(other)) > 2:
        return False
    blocks = SequenceMatcher(None, name, other).get_matching_blocks()
    return max(len(name), len(other)) - sum(block.size for block in blocks) <= 1
