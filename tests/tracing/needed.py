"""The packages for traces, which a machine may lack."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest


def need_tracing_packages() -> None:
    """Skip a module's tests where the packages are missing; in CI they must be there."""
    if find_spec("opentelemetry") and find_spec("opentelemetry.exporter"):
        return
    reason = "the packages of requirements-tracing.txt are not installed: make install-dev"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)
