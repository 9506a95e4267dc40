"""Write the style sheet of the staff's pages: the rules of unfold's that can apply there.

Unfold's has a rule for each class that a page could have, and a first visit waits for all of them.
``make fonts`` writes it anew, which a new class needs (tests/staff/test_first_load.py tells).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "memoryproject" / "static" / "dashboard" / "unfold.css"
CODE = ("templates", "memoryproject", "sessions_app", "memories_app", "cards_app")
CLASS = re.compile(r"\.((?:\\.|[\w-])+)")
ESCAPE = re.compile(r"\\(.)")
# Between selectors; not in parentheses or escaped.
COMMA = re.compile(r"(?<!\\),(?![^()]*\))")
# At-rules that hold rules; others stay as they are.
GROUPS = ("@layer", "@media", "@supports", "@container")


def style_sheet() -> str:
    """Return unfold's style sheet without the rules of classes that nothing names."""
    unfold, admin = (folder_of(name) for name in ("unfold", "django.contrib.admin"))
    sources = [
        *(ROOT / "templates").rglob("*.html"),
        *(ROOT / "memoryproject/static").rglob("*.js"),
    ]
    for folder in (*(ROOT / name for name in CODE), unfold, admin, folder_of("django.forms")):
        for kind in ("*.py", "*.html", "*.js"):
            sources += folder.rglob(kind)
    texts = "\n".join(sorted(path.read_text(encoding="utf-8") for path in set(sources)))
    whole = (unfold / "static/unfold/css/styles.css").read_text(encoding="utf-8")
    return "".join(_used(whole, texts))


def folder_of(package: str) -> Path:
    """Return the folder of an installed package."""
    return Path(str(import_module(package).__file__)).parent


def _used(css: str, texts: str) -> Iterator[str]:
    """Yield the rules whose classes all occur in the texts. ``css``: minified."""
    for rule in _rules(css):
        head, brace, body = rule.partition("{")
        if brace and head.startswith(GROUPS):
            yield f"{head}{{{''.join(_used(body[:-1], texts))}}}"
        elif any(_is_used(selector, texts) for selector in COMMA.split(head)):
            yield rule


def _is_used(selector: str, texts: str) -> bool:
    return all(ESCAPE.sub(r"\1", name) in texts for name in CLASS.findall(selector))


def _rules(css: str) -> Iterator[str]:
    """Yield the rules, and the statements that end with a semicolon, at the outermost level."""
    depth = begin = 0
    for place, sign in enumerate(css):
        depth += (sign == "{") - (sign == "}")
        if depth == 0 and sign in "};":
            yield css[begin : place + 1]
            begin = place + 1


def main() -> None:
    TARGET.write_text(style_sheet(), encoding="utf-8")
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
