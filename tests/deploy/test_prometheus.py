"""The alert rules of deploy/prometheus ask for metrics that the server has."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from django.test import Client

from tests.docs.sources import read

RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load(read("deploy/prometheus/alerts.yml"))["groups"]
    for rule in group["rules"]
]


@pytest.mark.django_db
def test_each_rule_asks_for_a_metric_of_ours(client: Client) -> None:
    there = set(re.findall(r"^(memory_\w+)", client.get("/metrics").content.decode(), re.MULTILINE))
    asked = {name for rule in RULES for name in re.findall(r"\bmemory_\w+", str(rule["expr"]))}
    assert asked
    assert asked <= there


def test_each_rule_says_what_is_wrong() -> None:
    for rule in RULES:
        assert rule["alert"].startswith("Memory")
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in ("critical", "warning")
