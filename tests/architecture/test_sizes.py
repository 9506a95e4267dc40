"""Modules and functions stay short enough to be read at once."""

from __future__ import annotations

import ast
import tokenize
from pathlib import Path

from tests.architecture.test_names import ROOT, sources

# Of a function, from its first line to its last one.
MAX_FUNCTION = 50
# Of a module, without empty lines, comments and docstrings.
MAX_CODE = 300
# Modules that are tables: one row after the other, with nothing to follow.
TABLES = frozenset({"memoryproject/settings.py"})
# A recall is searched and read here. In two modules the path of a recall would be longer than
# test_reading_paths allows.
LONGER = {
    "sessions_app/recall/recall_steps.py": 355,
    # Days and periods in texts of ten languages have one reader.
    "memories_app/facts/validity.py": 324,
}
# The product as a whole, without migrations. Release 1.2 took 5,600 lines: keyed memories, one
# grammar of filters, operations over REST, OAuth, moving in and out; release 1.3 2,200: what staff
# need daily. The aim stays 70,000 lines in 750 files.
MAX_PRODUCT = {"lines": 82_256, "files": 685}
NO_CODE = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    | {tokenize.ENDMARKER}
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lines_of(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def code_lines(path: Path) -> int:
    lines: set[int] = set()
    with path.open(encoding="utf-8") as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type not in NO_CODE:
                lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            lines -= set(range(docstring.lineno, docstring.lineno + lines_of(docstring)))
    return len(lines)


def test_no_function_is_longer_than_fifty_lines() -> None:
    faults = {
        f"{name_of(path)}: {node.name}": lines_of(node)
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and lines_of(node) > MAX_FUNCTION
    }
    assert faults == {}


def test_no_module_has_more_than_three_hundred_lines_of_code() -> None:
    lengths = {
        name_of(path): code_lines(path)
        for path in sources()
        # Of others not even all lines together are too many.
        if path.read_text(encoding="utf-8").count("\n") > MAX_CODE
    }
    assert lengths.keys() >= TABLES | LONGER.keys()
    faults = {
        name: length
        for name, length in lengths.items()
        if name not in TABLES and length > LONGER.get(name, MAX_CODE)
    }
    assert faults == {}


def test_the_product_stays_small() -> None:
    counted = {"lines": sum(map(code_lines, sources())), "files": len(sources())}
    assert {name: counted[name] for name in counted if counted[name] > MAX_PRODUCT[name]} == {}
