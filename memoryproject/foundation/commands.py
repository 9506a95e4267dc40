"""The base of the management commands that report what they did, as text or as JSON."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

UNUSABLE = "The database can't be used: {error}"
GO_ON = "Stopped. What is in stays; run it again to go on."


class UsageError(CommandError):
    """The command was called wrongly. It ends with 2, as argparse ends it."""

    def __init__(self, text: str) -> None:
        super().__init__(text, returncode=2)


class ReportingCommand(BaseCommand):
    """A command with the option ``--json``. Subclasses do their work in ``run``.

    ``json_help``: the help of the option; empty: the command has none. ``refusals``: by the kind of
    an error, the text with which the command ends, where ``{error}`` is the error's own. It ends
    with 1, and for errors that have ``usage`` with 2.
    """

    json_help: ClassVar[str] = "Print the report as JSON."
    refusals: ClassVar[Mapping[type[BaseException], str]] = {DatabaseError: UNUSABLE}

    def add_arguments(self, parser: ArgumentParser) -> None:
        if self.json_help:
            parser.add_argument("--json", action="store_true", help=self.json_help)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.run(options)
        except tuple(self.refusals) as error:
            text = next(text for kind, text in self.refusals.items() if isinstance(error, kind))
            raise CommandError(
                text.format(error=str(error).strip()),
                returncode=2 if getattr(error, "usage", False) else 1,
            ) from error

    def run(self, options: dict[str, Any]) -> None:
        raise NotImplementedError

    def report(self, options: Mapping[str, Any], document: Any, text: str, **form: Any) -> None:
        """Print the document as JSON, in the form that json.dumps takes, or else the text."""
        self.stdout.write(json.dumps(document, **form) if options["json"] else text)
