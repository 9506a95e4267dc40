"""The documents name modules that exist, and the layers that pyproject.toml declares."""

from __future__ import annotations

import re
import sys
from typing import Any

from django.apps import apps
from django.contrib.auth.management import _get_all_permissions  # type: ignore[attr-defined]

from tests.docs.sources import DOCUMENTS, PROJECT, read

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGES = "memoryproject|sessions_app|memories_app|cards_app"
# A path inside the project, such as `sessions_app/turns/answer.py` or `sessions_app/mcp/`.
PATH = re.compile(rf"(?<![\w/.-])((?:{PACKAGES}|tests|benchmarks)/[\w/]*(?:\.\w+)?)")
DOTTED = re.compile(rf"(?<![\w/.-])((?:{PACKAGES})(?:\.\w+)+)")


def test_every_path_exists() -> None:
    for document in DOCUMENTS:
        named = set(PATH.findall(_without_addresses(document.read_text(encoding="utf-8"))))
        assert [name for name in named if not (PROJECT / name).exists()] == [], document.name


def test_every_dotted_module_exists() -> None:
    known = _permissions()
    for document in DOCUMENTS:
        named = set(DOTTED.findall(document.read_text(encoding="utf-8"))) - known
        assert [name for name in named if not _is_there(name)] == [], document.name


def _without_addresses(text: str) -> str:
    """Without the admin's addresses, which begin with an app's label."""
    return re.sub(r"/admin/[\w/{}]+", "", text)


def _permissions() -> set[str]:
    """The permissions of our models, which are written like modules."""
    return {
        f"{model._meta.app_label}.{codename}"
        for model in apps.get_models()
        for codename, _ in _get_all_permissions(model._meta)
    }


def _is_there(name: str) -> bool:
    """Whether it is a module, or a name that is defined in a module."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        path = PROJECT.joinpath(*parts[:count])
        rest = parts[count:]
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                defined = rf"\b{rest[0]}\b" if rest else ""
                return re.search(defined, file.read_text(encoding="utf-8")) is not None
    return PROJECT.joinpath(*parts).is_dir()


def declared_layers() -> dict[str, list[set[str]]]:
    """The layers of pyproject.toml from top to bottom, by the package that has them."""
    contracts: list[dict[str, Any]] = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"][
        "contracts"
    ]
    return {
        contract.get("containers", ["the project"])[0]: [_names(row) for row in contract["layers"]]
        for contract in contracts
        if contract["type"] == "layers"
    }


def _names(row: str) -> set[str]:
    """The packages of one layer, with the brackets of optional ones taken off."""
    return {name.strip(" ()") for name in re.split(r"[|:]", row)}


def test_the_documented_layers_are_the_ones_that_are_checked() -> None:
    sections = re.split(r"^#+ Layers of ", read("docs/reference.md"), flags=re.MULTILINE)[1:]
    documented = {}
    for section in sections:
        title, _, text = section.partition("\n")
        rows = re.findall(r"^ {4}(\S.*)$", text.split("\n#")[0], re.MULTILINE)
        documented[title.strip("`")] = [_names(row) for row in rows]
    assert documented == declared_layers()


def test_every_package_of_a_contract_exists() -> None:
    for container, layers in declared_layers().items():
        prefix = "" if container == "the project" else f"{container}."
        for name in set().union(*layers):
            assert _is_there(f"{prefix}{name}"), f"{container}: {name}"


def test_the_tree_names_every_package_and_module_at_its_places() -> None:
    """A newcomer finds each of them with a word on what it holds."""
    tree = read("docs/reference.md").partition("## The tree")[2].partition("## ")[0]
    named: dict[str, set[str]] = {}
    places: list[str] = []
    for indent, text in re.findall(r"^ {4}( *)([a-z_]+(?:/|\.py|\.yaml).*)$", tree, re.MULTILINE):
        entries = re.findall(r"[a-z_]+(?:/|\.py|\.yaml)", text.split("   ")[0])
        places[len(indent) // 2 :] = [entries[0].rstrip("/")]
        named.setdefault("/".join(places[:-1]), set()).update(entries)
    named.pop("")
    assert {"memoryproject/foundation", "memoryproject/staff_site", "cards_app"} < named.keys()
    for place, names in named.items():
        there = {
            path.name + "/" * path.is_dir()
            for path in (PROJECT / place).iterdir()
            if path.name not in ("__init__.py", "__pycache__") and path.name[0] != "."
        }
        assert names == there, place


def test_every_record_is_described() -> None:
    data = read("docs/reference.md").partition("## Data")[2].partition("## ")[0]
    records = set(re.findall(r"\b[A-Z]\w+", " ".join(re.findall(r"^\| (.+?) \|", data, re.M))))
    ours = {model.__name__ for model in apps.get_models() if re.match(PACKAGES, model.__module__)}
    assert ours - records == set()
