"""The example of docs/cards.md does what it says."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.docs.sources import PROJECT, read


@pytest.mark.processes
def test_the_example_prints_what_stands_below_it() -> None:
    page = read("docs/cards.md")
    found = re.search(r"```python\n(.*?)```\s+prints\s+```text\n(.*?)```", page, re.DOTALL)
    assert found, "an example and its output"
    printed = subprocess.run(
        [sys.executable, "-c", found[1]], cwd=PROJECT, capture_output=True, check=True, text=True
    )
    assert printed.stdout == found[2]


@pytest.mark.processes
def test_the_benchmark_runs() -> None:
    printed = subprocess.run(
        [sys.executable, "benchmarks/measure_cards.py", "--messages", "4", "8"],
        cwd=PROJECT,
        capture_output=True,
        check=True,
        text=True,
    )
    assert len(printed.stdout.splitlines()) == 4
