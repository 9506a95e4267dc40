"""Write down the names of models and fields, so that they are translated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import translation

from memoryproject.dashboard.catalogue.labels import labels

TARGET = Path(__file__).resolve().parents[2] / "catalogue" / "model_labels.py"
HEAD = '''"""Names of models and fields, for the catalogue. Written by `manage.py list_labels`."""

from __future__ import annotations

from django.utils.translation import gettext_noop as _

MODEL_LABELS = (
'''


def written() -> str:
    """The whole file."""
    with translation.override(None):
        lines = "".join(f"    _({_quoted(name)}),\n" for name in labels())
    return f"{HEAD}{lines})\n"


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Command(BaseCommand):
    help = "Writes the list of names of models and fields that are translated."

    def handle(self, *args: Any, **options: Any) -> None:
        TARGET.write_text(written(), encoding="utf-8")
        self.stdout.write(f"{len(labels())} names")
