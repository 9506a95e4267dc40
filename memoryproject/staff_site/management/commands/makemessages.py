"""Django's makemessages, which also collects the texts of tables in YAML."""

from pathlib import Path
from typing import Any

from django.core.management.commands import makemessages

from memoryproject.foundation.tables import read_table


class TableOrSource(makemessages.BuildFile):
    """A file to be translated; of a table, the lines that gettext reads are made here."""

    def preprocess(self) -> None:
        if not self.path.endswith(".yaml"):
            super().preprocess()
            return
        marked: list[str] = []

        def add(text: str) -> None:
            marked.append(f"_({text!r})\n")

        def add_counted(one: str, several: str, _number: str) -> None:
            marked.append(f"ngettext({one!r}, {several!r}, 0)\n")

        read_table(self.path, self.translatable.file, text=add, counted=add_counted)
        Path(self.work_path).write_text("".join(marked), encoding="utf-8")


class Command(makemessages.Command):
    build_file_class = TableOrSource

    def handle(self, *args: Any, **options: Any) -> None:
        """Read tables, besides what Django reads."""
        extensions = options["extensions"] or ["html", "txt", "py", "yaml"]
        super().handle(*args, **{**options, "extensions": extensions})
