"""Find the embedded server that a Django database setting refers to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres, embedded_postgres

DATA_DIR_OPTION = "embedded_data_dir"


def server_of(settings: Mapping[str, Any]) -> EmbeddedPostgres:
    """Return the embedded server of one entry of DATABASES.

    Raises ImproperlyConfigured when the entry doesn't name its DATA_DIR.
    """
    data_dir = settings.get("OPTIONS", {}).get(DATA_DIR_OPTION)
    if not data_dir:
        raise ImproperlyConfigured(
            f"DATABASES uses the embedded backend without OPTIONS['{DATA_DIR_OPTION}']."
        )
    return embedded_postgres(Path(data_dir))
