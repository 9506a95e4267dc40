"""Write the defaults into docs/configuration.md, and .env.example from it: `make settings`.

The defaults are those of memoryproject/settings_table.yaml. The page describes each setting; its
texts are the comments of .env.example.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Collection
from pathlib import Path
from typing import Any

from memoryproject.settings_table import CHANGEABLE, OWN_SETTINGS

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs" / "configuration.md"
EXAMPLE = PROJECT / ".env.example"
HEADING = re.compile(r"## (.+)")
ROW = re.compile(r"\| `([A-Z][A-Z0-9_]+)` \|(?: `[^`]*`)? \| (.+) \|")
CHANGED = re.compile(r"May be changed in the browser: .*")
LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
# A copy of the file does what `make run` does without one. What stands in .env can't be changed in
# the browser, so everything else is a comment.
SET = {"ENABLE_MEMORY_SYSTEM": "true"}

HEADER = """\
# Every setting, with its default, as a comment: in a copy of this file as .env, remove the # before
# what you change. Memory is switched on. The environment wins over .env, and both win over what is
# set in the browser. An empty value counts as unset. A wrong value stops the start with a message
# that names the variable. Written by `make settings` from docs/configuration.md.
"""


def default(name: str) -> str:
    """Return a setting's default as one writes it in the environment."""
    value: Any = OWN_SETTINGS[name].default
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return (
        ",".join(value)
        if isinstance(value, Collection) and not isinstance(value, str)
        else str(value)
    )


def page_with_defaults(page: str) -> str:
    """Return docs/configuration.md with the defaults of the table."""

    def row(found: re.Match[str]) -> str:
        name, text = found.groups()
        shown = f" `{default(name)}`" if default(name) else ""
        return f"| `{name}` |{shown} | {text} |"

    described = {found[1] for found in ROW.finditer(page)}
    if described != set(OWN_SETTINGS):
        sys.exit(f"In only one of table and page: {', '.join(described ^ set(OWN_SETTINGS))}")
    changed = ", ".join(f"`{name}`" for name in OWN_SETTINGS if name in CHANGEABLE)
    return CHANGED.sub(f"May be changed in the browser: {changed}.", ROW.sub(row, page))


def example(page: str) -> str:
    """Return .env.example: the rows of the page, with its headings and texts as comments."""
    parts = [HEADER]
    heading = ""
    for line in page.splitlines():
        if found := HEADING.fullmatch(line):
            heading = f"\n# --- {found[1]} ".ljust(92, "-") + "\n"
        elif found := ROW.fullmatch(line):
            name, text = found.groups()
            plain = LINK.sub(r"\1", text).replace("`", "")
            comment = textwrap.fill(
                plain,
                width=98,
                initial_indent="# ",
                subsequent_indent="# ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            line = f"{name}={SET[name]}" if name in SET else f"# {name}={default(name)}"
            parts.append(f"{heading}{comment}\n{line}\n")
            heading = ""
    return "".join(parts)


def main() -> None:
    page = page_with_defaults(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(page, encoding="utf-8")
    EXAMPLE.write_text(example(page), encoding="utf-8")
    print(f"{len(OWN_SETTINGS)} settings: {PAGE}, {EXAMPLE}")


if __name__ == "__main__":
    main()
