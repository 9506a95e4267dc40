"""docs/licences.md lists every package that the server needs, each with a licence that is fit."""

from __future__ import annotations

import sys

import pytest

from docs.licences import PAGE, installed, is_fit
from tests.tables import table


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 needs packages that later versions contain"
)
def test_every_package_is_listed_with_its_licence() -> None:
    """If this fails: `make licences`."""
    page = PAGE.read_text(encoding="utf-8")
    missing = {f"| {name} | {found} |" for name, found in installed().items()} - set(
        page.splitlines()
    )
    assert missing == set()


def test_every_licence_allows_commercial_use() -> None:
    assert [name for name, found in installed().items() if not is_fit(found)] == []


@table(
    ("licence", "fit"),
    [
        ("MIT", True),
        ("Apache-2.0 OR BSD-3-Clause", True),
        ("LGPL-3.0-only", True),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("AGPL-3.0", False),
        ("BUSL-1.1", False),
        ("", False),
        ("UNKNOWN", False),
    ],
)
def test_a_licence_is_judged_by_each_of_its_parts(licence: str, fit: bool) -> None:
    assert is_fit(licence) is fit
