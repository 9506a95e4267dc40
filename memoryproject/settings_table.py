"""All settings, read from ``settings_table.yaml``.

`settings.py`, `.env.example`, the tables of docs/configuration.md and the page *Current settings*
are made from these rows; `make settings` writes the two files.
"""

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
