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
TEMPLATES = ROOT / "templates"
CODE = ("templates", "memoryproject", "sessions_app", "memories_app", "cards_app")
CLASS = re.compile(r"\.((?:\\.|[\w-])+)")
# A class may hold quotes itself: after:content-['check'].
WORDS = (re.compile(r"[^\s\"'`=<>{}]+"), re.compile(r'[^\s"]+'))
NAMED = re.compile(r"[\w./-]+\.html")
# Of fields that no page has: edited texts with formats, and two lists to move between.
UNUSED = re.compile(r"(?:^|:)(?:prose|selector)")
ESCAPE = re.compile(r"\\(.)")
# Between selectors; not in parentheses or escaped.
COMMA = re.compile(r"(?<!\\),(?![^()]*\))")
# At-rules that hold rules; others stay as they are.
GROUPS = ("@layer", "@media", "@supports", "@container")


def style_sheet() -> str:
    """Return unfold's style sheet without the rules of classes that nothing names."""
    packages = [folder_of(name) for name in ("unfold", "django.contrib.admin", "django.forms")]
    own = [*_files(TEMPLATES, "*.html"), *_files(ROOT / "memoryproject/static", "*.js")]
    for folder in (*(ROOT / name for name in CODE), *packages):
        own += _files(folder, "*.py")
    # The other scripts of the packages are libraries, with styles of their own.
    own.append(packages[0] / "static/unfold/js/app.js")
    for scripts in ("static/admin/js", "static/admin/js/admin"):
        own += (packages[1] / scripts).glob("*.js")
    texts = [path.read_text(encoding="utf-8") for path in sorted(set(own))]
    words: set[str] = set()
    for text in _with_templates(texts, packages):
        words.update(*(pattern.findall(text) for pattern in WORDS))
    sheet = packages[0] / "static/unfold/css/styles.css"
    used = {word for word in words if not UNUSED.search(word)}
    return "".join(_used(sheet.read_text(encoding="utf-8"), used))


def _files(folder: Path, kind: str) -> list[Path]:
    return [path for path in folder.rglob(kind) if "contrib" not in path.relative_to(folder).parts]


def _with_templates(texts: list[str], packages: list[Path]) -> Iterator[str]:
    """Yield the texts, and the packages' templates that they name, and those that these name.

    Not those that a template of ours replaces.
    """
    left: dict[str, Path] = {}
    for folder in (package / "templates" for package in packages):
        for path in folder.rglob("*.html"):
            name = path.relative_to(folder).as_posix()
            if not (TEMPLATES / name).exists():
                left.setdefault(name, path)
    texts = list(texts)
    while texts:
        text = texts.pop()
        yield text
        named = set(NAMED.findall(text))
        # Django finds some by the end of their name alone.
        named |= {f"admin/{name}" for name in named if "/" not in name}
        texts += [left.pop(name).read_text(encoding="utf-8") for name in left.keys() & named]


def folder_of(package: str) -> Path:
    """Return the folder of an installed package."""
    return Path(str(import_module(package).__file__)).parent


def _used(css: str, words: set[str]) -> Iterator[str]:
    """Yield the rules whose classes are all among the words. ``css``: minified."""
    for rule in _rules(css):
        head, brace, body = rule.partition("{")
        if brace and head.startswith(GROUPS):
            if inside := "".join(_used(body[:-1], words)):
                yield f"{head}{{{inside}}}"
        elif any(_is_used(selector, words) for selector in COMMA.split(head)):
            yield rule


def _is_used(selector: str, words: set[str]) -> bool:
    return all(ESCAPE.sub(r"\1", name) in words for name in CLASS.findall(selector))


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
