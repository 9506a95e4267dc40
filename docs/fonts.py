"""Write the fonts of the staff's pages: the letters and icons that they use, of unfold's fonts.

Whole, unfold's fonts are 750 kB, and a first visit waits for most of them. ``make fonts`` writes
the parts anew, which a new icon needs (tests/staff/test_first_load.py tells).
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

from fontTools.subset import Options, Subsetter  # type: ignore[import-not-found]
from fontTools.ttLib import TTFont  # type: ignore[import-not-found]

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "memoryproject" / "static" / "dashboard" / "fonts"
CODE = ("memoryproject", "sessions_app", "memories_app", "cards_app")
# A word that stands alone in quotes, between two tags, or on a line may name an icon.
QUOTED = re.compile(r"""["']([a-z][a-z0-9_]+)["']""")
SHOWN = re.compile(r"(?m)(?:>|^)\s*([a-z][a-z0-9_]+)\s*(?:<|$)")
# In tables in YAML.
NAMED = re.compile(r"\bicon: ([a-z][a-z0-9_]+)")
# Latin with its accents, Cyrillic, punctuation, currencies, arrows. Other scripts are the system's.
LETTERS = (
    *range(0x20, 0x7F),
    *range(0xA0, 0x180),
    *range(0x400, 0x460),
    *range(0x2010, 0x2040),
    *range(0x20A0, 0x20C1),
    *(0x2122, 0x2190, 0x2191, 0x2192, 0x2193, 0x2212, 0x2318, 0x25B6, 0x2713),
)
WEIGHTS = {400: "Regular", 600: "SemiBold"}


def unfold() -> Path:
    """Return the folder of the installed package."""
    spec = find_spec("unfold")
    if spec is None or spec.origin is None:
        sys.exit("unfold isn't installed: make install-dev")
    return Path(spec.origin).parent


def ligatures(font: TTFont) -> dict[str, str]:
    """Return the glyph of each icon by the icon's name."""
    letters = {glyph: chr(code) for code, glyph in font.getBestCmap().items()}
    found = {}
    for lookup in font["GSUB"].table.LookupList.Lookup:
        for table in lookup.SubTable:
            for first, rest in getattr(
                getattr(table, "ExtSubTable", table), "ligatures", {}
            ).items():
                for each in rest:
                    name = "".join(letters.get(glyph, "") for glyph in (first, *each.Component))
                    found[name] = each.LigGlyph
    return found


def words_used() -> set[str]:
    """Return each word of code and templates that may name an icon."""
    words: set[str] = set()
    for folder in CODE:
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            words.update(QUOTED.findall(text), SHOWN.findall(text))
        for path in (ROOT / folder).rglob("*.yaml"):
            words.update(NAMED.findall(path.read_text(encoding="utf-8")))
    shown = [*(ROOT / "templates").rglob("*.html"), *unfold().rglob("*.html")]
    for paths in (shown, unfold().rglob("*.js"), unfold().rglob("*.css")):
        for path in paths:
            text = path.read_text(encoding="utf-8")
            words.update(QUOTED.findall(text), SHOWN.findall(text))
    return words


def subset(font: TTFont, name: str, **kept: object) -> None:
    # Every icon is made of letters: by the closure all would stay.
    options = Options(layout_closure=False, flavor="woff2", notdef_outline=True)
    options.layout_features = ["rlig", "liga", "kern", "tnum", "calt", "ccmp"]
    subsetter = Subsetter(options)
    subsetter.populate(**kept)
    subsetter.subset(font)
    font.flavor = "woff2"
    font.save(TARGET / name)
    print(f"{name}: {(TARGET / name).stat().st_size:,} bytes")


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    fonts = unfold() / "static" / "unfold" / "fonts"
    for weight, style in WEIGHTS.items():
        font = TTFont(fonts / "inter" / f"Inter-{style}.woff2", recalcTimestamp=False)
        subset(font, f"inter-{weight}.woff2", unicodes=LETTERS)
    font = TTFont(
        fonts / "material-symbols" / "Material-Symbols-Outlined.woff2", recalcTimestamp=False
    )
    known = ligatures(font)
    used = sorted(known.keys() & words_used())
    subset(
        font,
        "symbols.woff2",
        glyphs=[known[name] for name in used],
        text="abcdefghijklmnopqrstuvwxyz0123456789_",
    )
    (TARGET / "symbols.txt").write_text("\n".join(used) + "\n", encoding="utf-8")
    for package, licence in (("inter", "Inter"), ("material-symbols", "Material-Symbols")):
        text = (fonts / package / "LICENSE").read_text(encoding="utf-8")
        (TARGET / f"LICENSE-{licence}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
