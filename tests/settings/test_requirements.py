"""The requirements files hold what pyproject.toml and the code ask for."""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

from tests.tables import table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
CODE = ("memoryproject", "sessions_app", "memories_app", "cards_app")
# Imported only where EMBEDDER or MEDIA_STORAGE asks for it.
OPTIONAL = {"model2vec", "boto3", "botocore", "storages"}
KNOWN = {*sys.stdlib_module_names, *CODE, *OPTIONAL, "__future__"}
NAME = re.compile(r"[A-Za-z0-9._-]+")
# The linter lets an import stand at the beginning of a line alone, and name one module.
IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\w+)", re.MULTILINE)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def named(requirements: list[Any]) -> set[str]:
    """The packages of a group, without those of the groups that it includes."""
    names = [each for each in requirements if isinstance(each, str)]
    return {normal(found[0]) for each in names if (found := NAME.match(each))}


def pinned(file: str) -> dict[str, set[str]]:
    """The pins by package; one package has several for several Pythons."""
    pins: dict[str, set[str]] = {}
    for entry in entries(file):
        pin = entry.partition("\\")[0].strip()
        pins.setdefault(normal(pin.partition("==")[0]), set()).add(pin.partition(";")[0].strip())
    return pins


def entries(file: str) -> list[str]:
    """Each with the lines of its hashes."""
    return [each for each in re.split(r"\n(?! )", (ROOT / file).read_text().strip()) if each]


@pytest.fixture
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_dependency_is_pinned(project: dict[str, Any]) -> None:
    assert named(project["project"]["dependencies"]) <= set(pinned("requirements.txt"))
    groups = project["dependency-groups"]
    assert named(groups["tracing"]) <= set(pinned("requirements-tracing.txt"))
    assert named(groups["s3"]) <= set(pinned("requirements-s3.txt"))
    assert named(groups["dev"]) <= set(pinned("requirements-dev.txt"))


@pytest.mark.parametrize("file", ["requirements-tracing.txt", "requirements-s3.txt"])
def test_the_tests_have_the_packages_that_are_needed_only_where_asked_for(file: str) -> None:
    optional = pinned(file)
    dev = {**pinned("requirements.txt"), **pinned("requirements-dev.txt")}
    assert {name: pins for name, pins in optional.items() if dev.get(name) != pins} == {}


def test_the_server_needs_no_development_package(project: dict[str, Any]) -> None:
    for group in ("dev", "tracing", "s3"):
        assert not named(project["dependency-groups"][group]) & set(pinned("requirements.txt"))


@pytest.mark.parametrize(
    "file", ["requirements-tracing.txt", "requirements-s3.txt", "requirements-dev.txt"]
)
def test_both_files_name_the_same_versions(file: str) -> None:
    runtime, other = pinned("requirements.txt"), pinned(file)
    shared = runtime.keys() & other.keys()
    assert {name: other[name] for name in shared if not other[name] <= runtime[name]} == {}


@table(
    "file",
    ["requirements.txt", "requirements-tracing.txt", "requirements-s3.txt", "requirements-dev.txt"],
)
def test_every_pin_has_hashes_and_names_no_place(file: str) -> None:
    for entry in entries(file):
        assert re.match(r"[a-z0-9.-]+==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry
        assert "/" not in entry, entry


def imports(path: Path, known: set[str]) -> set[str]:
    """What a module imports beside what is known."""
    text = path.read_text()
    if known.issuperset(IMPORT.findall(text)):
        return set()
    # Some lines that look so are of texts.
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found - known


def modules_of(packages: set[str]) -> set[str]:
    """What these packages let code import. Python 3.10's own function knows few."""
    return {
        file.parts[0].partition(".")[0]
        for package in distributions()
        if normal(package.name) in packages
        for file in package.files or ()
    }


def test_the_code_imports_what_the_server_installs() -> None:
    known = KNOWN | modules_of(set(pinned("requirements.txt")))
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for folder in CODE
        for path in (ROOT / folder).rglob("*.py")
        for name in imports(path, known)
    }
    assert missing == set()
