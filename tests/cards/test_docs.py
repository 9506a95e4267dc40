"""The example of docs/cards.md does what it says."""

from __future__ import annotations

import re

import pytest

from tests.docs.sources import read
from tests.programs import python


@pytest.mark.processes
def test_the_example_prints_what_stands_below_it() -> None:
    page = read("docs/cards.md")
    found = re.search(r"```python\n(.*?)```\s+prints\s+```text\n(.*?)```", page, re.DOTALL)
    assert found, "an example and its output"
    printed = python("-c", found[1])
    assert printed.stdout == found[2]


@pytest.mark.processes
def test_the_benchmark_runs() -> None:
    printed = python("benchmarks/measure_cards.py", "--messages", "4", "8")
    assert len(printed.stdout.splitlines()) == 4
