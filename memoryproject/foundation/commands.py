"""The base of the management commands that report what they did, as text or as JSON."""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TextIO, TypeAlias

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from django.db import DatabaseError

from memoryproject.foundation.tables import read_table

TEXTS = "commands.yaml"
UNUSABLE = "The database can't be used: {error}"
MEMORY_OFF = "The memory system is disabled: set ENABLE_MEMORY_SYSTEM=true in .env."
UNREACHABLE = (
    "{error}\nThis is the database of DATABASE_URL, {HOST}/{NAME}. Check that it runs, and its "
    "host, port, user and password. Without DATABASE_URL the server starts one of its own."
)
GO_ON = "Stopped. What is in stays; run it again to go on."


class UsageError(CommandError):
    """The command was called wrongly. It ends with 2, as argparse ends it."""

    def __init__(self, text: str) -> None:
        super().__init__(text, returncode=2)


def error_words(error: BaseException) -> str:
    """Return an error's text; of a database that can't be reached, with its place and advice."""
    text = str(error).strip()
    # Only errors of the server itself have a state.
    if not settings.DATABASE_URL or getattr(error.__cause__, "sqlstate", "") is not None:
        return text
    return UNREACHABLE.format(error=text, **settings.DATABASES["default"])


# What ``add_argument`` of a parser gets.
Argument: TypeAlias = tuple[tuple[str, ...], dict[str, Any]]


def option(*names: str, **how: Any) -> Argument:
    """Return an argument or an option, in the words of argparse."""
    return names, how


def flag(name: str, text: str = "") -> Argument:
    """Return an option without a value. ``text``: its help, where no table has it."""
    return (name,), {"action": "store_true", **({"help": text} if text else {})}


def command_texts(module: str) -> Mapping[str, Any]:
    """Return what ``commands.yaml`` beside a command says of it: ``help`` and ``options``."""
    path = Path(str(sys.modules[module].__file__))
    if not path.with_name(TEXTS).exists():
        return {}
    found: Mapping[str, Any] = read_table(str(path), TEXTS).get(path.stem, {})
    return found


class DeclaredCommand(BaseCommand):
    """A command of which ``commands.yaml`` beside it says what it and its options mean.

    ``arguments``: its own ones; of a list of them only one can be given. ``actions``: those of its
    sub-commands, by name; ``action_shown``: what stands for these names where they are many.
    """

    arguments: ClassVar[Sequence[Argument | list[Argument]]] = ()
    actions: ClassVar[Mapping[str, Sequence[Argument]]] = {}
    action_shown: ClassVar[str | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.texts = command_texts(type(self).__module__)
        self.help = self.texts.get("help", self.help)

    def add_arguments(self, parser: ArgumentParser) -> None:
        meanings = self.texts.get("options", {})
        _add(parser, self.arguments, meanings)
        if not self.actions:
            return
        named = parser.add_subparsers(
            dest="action", required=True, metavar=self.action_shown, help=meanings["action"]
        )
        for name, arguments in self.actions.items():
            texts = self.texts["actions"][name]
            one = named.add_parser(name, help=texts["help"], description=texts["help"])
            _add(one, arguments, {**meanings, **texts.get("options", {})})


def _add(
    parser: ArgumentParser,
    arguments: Sequence[Argument | list[Argument]],
    meanings: Mapping[str, str],
) -> None:
    for each in arguments:
        alone = isinstance(each, list)
        to = parser.add_mutually_exclusive_group() if alone else parser
        for names, how in each if isinstance(each, list) else [each]:
            to.add_argument(*names, **{"help": meanings.get(names[0]), **how})


class ReportingCommand(DeclaredCommand):
    """A command with the option ``--json``. Subclasses do their work in ``run``.

    ``json_help``: the help of the option; empty: the command has none.
    ``refusals``: by the kind of an error, the text with which the command ends, where ``{error}``
    is the error's own. It ends with 1, and for errors that have ``usage`` with 2. ``fills_memory``:
    where memory is off, it says so, and does what it is told all the same, so that memory can be
    filled before it is used.
    """

    json_help: ClassVar[str] = "Print the report as JSON."
    fills_memory: ClassVar[bool] = False
    refusals: ClassVar[Mapping[type[BaseException], str]] = {DatabaseError: UNUSABLE}

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        if self.json_help:
            parser.add_argument("--json", action="store_true", help=self.json_help)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if self.fills_memory and not settings.ENABLE_MEMORY_SYSTEM:
                self.stderr.write(MEMORY_OFF)
            self.run(options)
        except tuple(self.refusals) as error:
            text = next(text for kind, text in self.refusals.items() if isinstance(error, kind))
            raise CommandError(
                text.format(error=error_words(error)),
                returncode=2 if getattr(error, "usage", False) else 1,
            ) from error

    def run(self, options: dict[str, Any]) -> None:
        raise NotImplementedError

    def report(self, options: Mapping[str, Any], document: Any, text: str, **form: Any) -> None:
        """Print the document as JSON, in the form that json.dumps takes, or else the text."""
        self.stdout.write(json.dumps(document, **form) if options["json"] else text)


# Types and checks that the options of several commands share, and a progress bar.


def folder_given(text: str) -> Path:
    """Return the folder that an option names. Raises ArgumentTypeError."""
    # An unset shell variable must not mean the current folder.
    if not text.strip() or "\x00" in text:
        raise ArgumentTypeError("a folder is needed")
    return Path(text).expanduser()


def refuse_missing_values(options: Mapping[str, Any]) -> None:
    """Raise CommandError for ``--option=--``, which argparse takes for an empty list."""
    for name, value in options.items():
        if value == []:
            option = name.replace("_", "-")
            raise CommandError(f"--{option}: a value is needed, not --.", returncode=2)


# A progress bar on a terminal; no output anywhere else.

WIDTH = 30


class ProgressBar:
    """A progress bar. Call it with the done and the total number; it draws visible changes only."""

    def __init__(self, stream: OutputWrapper | TextIO) -> None:
        self._stream = stream if stream.isatty() else None
        self._drawn = ""

    def __call__(self, done: int, total: int) -> None:
        if self._stream is None or total == 0:
            return
        filled = WIDTH * done // total
        line = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {100 * done // total}% ({done}/{total})"
        if line != self._drawn:
            self._drawn = line
            self._stream.write(f"\r{line}" + ("\n" if done >= total else ""))
            self._stream.flush()
