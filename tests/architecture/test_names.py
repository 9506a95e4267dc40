"""Retired words stay out of the names of modules, classes, functions and constants.

A module's name occurs once in an app, so that it can be found by its name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.tables import table

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("memoryproject", "sessions_app", "memories_app", "cards_app")
# What each was called in the glossary's place: docs/reference.md, "Retired words".
RETIRED = frozenset(
    {"doomed", "rivals", "witness", "promising", "settle", "settled", "scrub", "told"}
    | {"telling", "tellings", "retell", "untell"}
)
RETIRED_PHRASES = ("carry_out", "bring_in", "take_back", "in_office", "rank_said", "held_find")
LIMITS = ("MOST_", "LONGEST_", "FEWEST_", "FARTHEST_", "SHORTEST_", "LARGEST_", "SMALLEST_")
RETIRED_CLASSES = ("Tools", "FileTools", "ForgetTools", "SaveTools", "HookTools")
RETIRED_MODULES = frozenset(
    {"asked", "doomed", "moment", "near", "nearest", "promising", "rivals", "soon", "watched"}
)
# Parameters, variables and fields that said nothing about what they hold.
RETIRED_VARIABLES = frozenset({"asked", "brought", "doomed", "said", "told", "witness"})
# Columns and relations that keep their names in the database.
KEPT = frozenset({"tellings", "told_at", "told_count", "last_told_at"})
# Names that say what a module is in its feature. Several features have a module of this name.
ROLES = frozenset(
    {"__init__", "__main__", "admin", "api", "apps", "base", "checks", "dependencies", "errors"}
    | {"examples", "facade", "filters", "formats", "middleware", "models", "presentation"}
    | {"recording", "scripted", "serializers", "tasks", "urls", "views"}
)
# Two providers whose packages have the same modules.
WHATSAPP = Path("memoryproject/foundation/integrations/whatsapp")
PARALLEL = (WHATSAPP / "cloud", WHATSAPP / "green")


def words_of(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def names_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (
                target.id
                for target in node.targets
                if isinstance(target, ast.Name) and target.id.isupper()
            )


def variables_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def faults_of(name: str) -> Iterator[str]:
    if name in KEPT:
        return
    is_retired = (
        bool(words_of(name) & RETIRED)
        or name in RETIRED_CLASSES
        or any(phrase in name.lower() for phrase in RETIRED_PHRASES)
        or name.lstrip("_").startswith(LIMITS)
    )
    if is_retired:
        yield name


def sources() -> list[Path]:
    found = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return [path for path in found if "migrations" not in path.parts]


def test_no_name_uses_a_retired_word() -> None:
    faults = set()
    for path in sources():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        wrong = [fault for name in (path.stem, *names_of(tree)) for fault in faults_of(name)]
        wrong += [name for name in variables_of(tree) if name.lstrip("_") in RETIRED_VARIABLES]
        faults |= {f"{path.relative_to(ROOT)}: {fault}" for fault in wrong}
    assert faults == set()


def test_no_module_has_a_retired_name() -> None:
    retired = {str(path.relative_to(ROOT)) for path in sources() if path.stem in RETIRED_MODULES}
    assert retired == set()


def test_the_glossary_names_every_retired_word() -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8").lower()
    # Forms of one word stand for each other.
    forms = {"settled": "settle", "telling": "told", "tellings": "told", "retell": "told"}
    wanted = {forms.get(word, word) for word in RETIRED} - {"untell"}
    assert {word for word in wanted if word not in text} == set()


def duplicates_of(paths: Iterable[Path]) -> list[str]:
    """Return a line for each two modules of one name within the same app root."""
    seen: dict[tuple[str, str], Path] = {}
    faults = []
    for path in sorted(paths):
        is_stub = path.parent.match("management/commands")
        if path.stem in ROLES or is_stub or "migrations" in path.parts:
            continue
        # The modules of the second provider are compared as if they were the first one's.
        place = PARALLEL[0] / path.name if path.parent in PARALLEL else path
        first = seen.setdefault((path.parts[0], path.stem), place)
        if first != place:
            faults.append(f"{first} and {place} have the same name: rename one of them")
    return faults


def test_a_module_name_occurs_once_in_an_app() -> None:
    assert duplicates_of(path.relative_to(ROOT) for path in sources()) == []


@table(
    ("first", "second"),
    [
        ("sessions_app/notes.py", "sessions_app/inbox/notes.py"),
        ("sessions_app/turns/commands/search.py", "sessions_app/forgetting/search.py"),
        ("memories_app/store/rows.py", "memories_app/review/rows.py"),
        (f"{PARALLEL[0]}/parse.py", "memoryproject/staff_site/parse.py"),
    ],
)
def test_two_modules_of_one_name_are_found(first: str, second: str) -> None:
    (fault,) = duplicates_of([Path(first), Path(second)])
    assert first in fault
    assert second in fault


@table(
    ("first", "second"),
    [
        ("sessions_app/recall/facade.py", "sessions_app/turns/facade.py"),
        ("sessions_app/inbox/notes.py", "memories_app/store/notes.py"),
        (f"{PARALLEL[0]}/parse.py", f"{PARALLEL[1]}/parse.py"),
        ("sessions_app/restore.py", "sessions_app/management/commands/restore.py"),
    ],
)
def test_roles_and_parallel_packages_may_share_a_name(first: str, second: str) -> None:
    assert duplicates_of([Path(first), Path(second)]) == []


@table("name", ["ForgetTools", "MOST_ITEMS", "_LONGEST_NAME", "turn_settle", "carry_out", "Doomed"])
def test_the_check_finds_them(name: str) -> None:
    assert list(faults_of(name)) == [name]
