"""Find every regular expression of the project, by its syntax trees."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = ("memoryproject", "sessions_app", "memories_app", "cards_app")
AT_THE_BEGINNING = {"match", "fullmatch"}
# Those that take flags after the text.
READING = AT_THE_BEGINNING | {"search", "findall", "finditer"}
METHODS = READING | {"sub", "subn", "split"}
FUNCTIONS = METHODS | {"compile"}
USED = re.compile(rf"\.\s*(?:{'|'.join(sorted(FUNCTIONS))})\b")


@dataclass(frozen=True)
class Found:
    """``pattern`` is None where it is made of values that only a call knows.

    ``methods``: those that are called on it, by name; all of them where it has no name.
    """

    where: str
    source: str
    pattern: re.Pattern[str] | None
    methods: frozenset[str]

    @property
    def ways(self) -> list[str]:
        """Each way in which a text is compared with it: at each place, at its beginning, whole.
        Who looks at each place looks at the beginning, too, with the same steps."""
        if self.methods - AT_THE_BEGINNING:
            return sorted({"search"} | self.methods & {"fullmatch"})
        return sorted(self.methods)


@dataclass(frozen=True)
class Uses:
    """What a module has to do with patterns: its calls of ``re``, each with its function and the
    name that its value gets; the names on which it calls a pattern's method; the last parts of
    what it imports."""

    calls: list[tuple[ast.Call, str, str]]
    named: set[tuple[str, str]]
    imported: set[str]

    @property
    def of_local_names(self) -> set[str]:
        """The methods that are called on what isn't a constant of a module."""
        return {
            method
            for owner, method in self.named
            if owner != "re" and not owner.lstrip("_").isupper()
        }


@cache
def uses() -> dict[str, Uses]:
    """Return the uses of each module. Its tree isn't kept: only a part of it is looked at."""
    files = [
        path
        for package in PACKAGES
        for path in sorted((PROJECT / package).rglob("*.py"))
        if "migrations" not in path.parts
    ]
    sources = {path: path.read_text(encoding="utf-8") for path in files}
    return {
        ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__"): (
            _uses(ast.parse(source))
        )
        for path, source in sources.items()
        # Every use has the name of a method or of a function after a dot.
        if USED.search(source)
    }


def _uses(tree: ast.Module) -> Uses:
    names: dict[int, str] = {}
    found = Uses([], set(), set())
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names[id(node.value)] = node.targets[0].id
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.imported.update(each.name.rpartition(".")[2] for each in node.names)
            found.imported.add((getattr(node, "module", "") or "").rpartition(".")[2])
        elif isinstance(node, ast.Attribute) and node.attr in METHODS:
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            found.named.add((name, node.attr))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            is_of_re = isinstance(owner, ast.Name) and owner.id == "re" and bool(node.args)
            if is_of_re and node.func.attr in FUNCTIONS:
                # An assignment is met before what it assigns.
                found.calls.append((node, node.func.attr, names.get(id(node), "")))
    return found


@cache
def methods_by_name() -> dict[tuple[str, str], set[str]]:
    """Return the methods of patterns that are called on each name.

    A name that begins with an underscore is of its module; others are looked for everywhere, in
    the module "".
    """
    found: dict[tuple[str, str], set[str]] = {}
    for module, used in uses().items():
        for name, method in used.named:
            own = module if name.startswith("_") else ""
            found.setdefault((own, name), set()).add(method)
    return found


@cache
def all_found() -> list[Found]:
    """Return the patterns that are written somewhere, and those that modules keep in a table."""
    written = _written()
    known = {each.pattern for each in written}
    return written + [each for each in _kept() if each.pattern not in known]


def _kept() -> Iterator[Found]:
    for module in {each.where.partition(":")[0]: None for each in _written()}:
        for name, value in vars(importlib.import_module(module)).items():
            methods = _handled(module, name)
            for pattern in _patterns_in(value, 3):
                yield Found(f"{module}:{name}", pattern.pattern, pattern, methods)


def _handled(module: str, name: str) -> frozenset[str]:
    """Return what is called on what a table holds: by a local name, where the table is known."""
    known = {name, module.rpartition(".")[2]}
    methods = (
        used.of_local_names
        for where, used in uses().items()
        if where == module or known & used.imported
    )
    return frozenset({"search"}.union(*methods))


def _patterns_in(value: Any, depth: int) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif depth and isinstance(value, dict):
        for each in value.values():
            yield from _patterns_in(each, depth - 1)
    elif depth and isinstance(value, (list, tuple, set, frozenset)):
        for each in value:
            yield from _patterns_in(each, depth - 1)


@cache
def _written() -> list[Found]:
    return [
        _found(module, node, function, name)
        for module, used in uses().items()
        for node, function, name in used.calls
    ]


def _found(module: str, node: ast.Call, function: str, name: str) -> Found:
    where = f"{module}:{name or ast.unparse(node.args[0])[:60]}"
    if function == "compile":
        # A pattern without a name of its own, or one that is handed on: any method may be called.
        own = module if name.startswith("_") else ""
        methods = methods_by_name().get((own, name)) or METHODS
    else:
        methods = {function}
    pattern = _evaluated(module, node, function)
    return Found(where, ast.unparse(node.args[0]), pattern, frozenset(methods))


def _evaluated(module: str, node: ast.Call, function: str) -> re.Pattern[str] | None:
    """Compile the pattern with the module's own names, if it is made of them alone."""
    values = vars(importlib.import_module(module))
    flags: Any = next((each.value for each in node.keywords if each.arg == "flags"), None)
    if flags is None and function in READING | {"compile"}:
        place = 1 if function == "compile" else 2
        flags = node.args[place] if len(node.args) > place else None
    try:
        pattern = _value(node.args[0], values)
        return re.compile(pattern, _value(flags, values) if flags is not None else 0)
    except NameError:
        return None


def _value(expression: ast.expr, values: dict[str, Any]) -> Any:
    code = compile(ast.Expression(expression), "pattern", "eval")
    return eval(code, dict(values))  # the project's own source
