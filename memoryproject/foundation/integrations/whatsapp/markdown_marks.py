"""The marks of a line of Markdown, as WhatsApp shows them.

A paragraph's tokens become pieces of text, each with the marks that hold for it. WhatsApp formats a
mark only at a word's boundary and within one line, so marks are set when it is known what stands
around them.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from markdown_it.token import Token

BOLD, ITALIC, STRUCK = "*", "_", "~"
_MARK_OF = {"strong": BOLD, "em": ITALIC, "s": STRUCK}

BREAK_TAGS = ("p", "div", "tr", "table", "ul", "ol", "blockquote", "details", "summary", "hr")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
STYLE_TAGS = {
    **dict.fromkeys(("b", "strong", "th", *HEADINGS), BOLD),
    **dict.fromkeys(("i", "em", "cite"), ITALIC),
    **dict.fromkeys(("s", "del", "strike"), STRUCK),
}
CODE_TAGS = ("code", "kbd", "tt")
_OTHER_TAGS = ("a", "img", "br", "li", "td", "pre", "u", "ins", "span", "font", "small", "big")
_MORE_TAGS = ("sub", "sup", "mark", "center", "thead", "tbody", "section", "html", "body")
KNOWN_TAGS = {*BREAK_TAGS, *STYLE_TAGS, *CODE_TAGS, *_OTHER_TAGS, *_MORE_TAGS}


@dataclass(frozen=True)
class Run:
    """A piece of text. ``styles``: WhatsApp's marks that hold for it, by what the source had."""

    text: str
    styles: dict[str, str]


def lines_of(runs: Sequence[Run]) -> list[str]:
    """Return the lines of a paragraph, each with its marks."""
    lines: list[list[Run]] = [[]]
    for run in runs:
        first, *others = run.text.split("\n")
        lines[-1].append(Run(first, run.styles))
        lines += [[Run(text, run.styles)] for text in others]
    shown = [marked(line).strip(" \t") for line in lines]
    return "\n".join(shown).strip("\n").split("\n")


def marked(runs: Sequence[Run]) -> str:
    """Return one line with its marks; those that WhatsApp would show as characters are left out."""
    plain = "".join(run.text for run in runs)
    spans = [
        (start, end, *_marks_of(plain, start, end, mark, source))
        for mark in (BOLD, ITALIC, STRUCK)
        for start, end, source in _spans(runs, plain, mark)
    ]
    opened: dict[int, str] = {}
    closed: dict[int, str] = {}
    # The longer span is the outer one, and of two that are alike the first.
    for start, end, opener, closer in sorted(spans, key=lambda span: span[0] - span[1]):
        opened[start] = opened.get(start, "") + opener
        closed[end] = closer + closed.get(end, "")
    shown, done = [], 0
    for place in sorted({*opened, *closed}):
        shown += [plain[done:place], closed.get(place, ""), opened.get(place, "")]
        done = place
    return "".join([*shown, plain[done:]])


def _spans(runs: Sequence[Run], plain: str, mark: str) -> Iterator[tuple[int, int, str]]:
    """Yield where a mark begins and ends, without white space at its edges, and its source."""
    start = 0
    for is_set, group in groupby(runs, key=lambda run: mark in run.styles):
        members = list(group)
        end = start + sum(len(run.text) for run in members)
        inner = plain[start:end]
        if is_set and inner.strip():
            first = start + len(inner) - len(inner.lstrip())
            yield first, start + len(inner.rstrip()), members[0].styles[mark]
        start = end


def _marks_of(plain: str, start: int, end: int, mark: str, source: str) -> tuple[str, str]:
    """Return what is set before and after a span."""
    edges = [plain[start - 1 : start], plain[start], plain[end - 1], plain[end : end + 1]]
    edges[0] = edges[0] if start else ""
    if source == "__" and _is_dunder(plain, start, end):
        return source, source
    in_word = [_is_word(edges[0]), _is_word(edges[3])]
    if not any(in_word):
        return mark, mark
    is_latin = all(edge.isascii() and edge.isalnum() for edge in edges)
    if all(in_word) and is_latin and (source == "*" or any(edge.isdigit() for edge in edges)):
        # 2*3*4 is arithmetic.
        return source, source
    if mark == STRUCK:
        # What no longer holds has to be told from what does.
        return " ~" if in_word[0] else mark, "~ " if in_word[1] else mark
    return "", ""


_DUNDERS = ("init", "main", "name", "file", "all", "doc", "dict", "class", "call", "str", "repr")


def _is_dunder(plain: str, start: int, end: int) -> bool:
    """Return whether __name__ is an identifier of Python, not a bold word."""
    inner = plain[start:end]
    is_part = plain[max(start - 1, 0) : start] == "." or re.match(r"\.\w|\(", plain[end : end + 2])
    return inner in _DUNDERS or bool(is_part and inner.isascii() and inner.isidentifier())


def _is_word(character: str) -> bool:
    return character.isalnum() or (character != "" and unicodedata.category(character)[0] == "M")


_FOOTNOTE = re.compile(r"\[\^([^\[\]\s]{1,40})\]")
# Marks around white space strike nothing; "~5 km" says "about".
_TILDES = re.compile(r"(?<=\w)~(?=\s)([^~\n]*?\s)~(?=\s|$)")
_HIDDEN_SCHEMES = ("mailto:", "tel:")


def runs_of(tokens: Sequence[Token], styles: dict[str, str]) -> list[Run]:
    """Return a paragraph's pieces of text; ``styles`` hold for all of it."""
    writer = _RunWriter(styles)
    for token in tokens:
        writer.add(token)
    while writer.links:
        writer.link_ends()
    return writer.runs


class _RunWriter:
    """Makes pieces of text from the tokens of a paragraph."""

    def __init__(self, styles: dict[str, str]) -> None:
        self.runs: list[Run] = []
        self.links: list[tuple[str, int]] = []
        self._styles = [*styles.items()]

    def add(self, token: Token) -> None:
        """Add what a token shows."""
        kind, _, side = token.type.rpartition("_")
        if kind in _MARK_OF:
            self._style(_MARK_OF[kind], token.markup, begins=side == "open")
        elif token.type == "link_open":
            # In <https://…> the parser decodes no entity.
            href = str(token.attrs.get("href", "")).replace("&amp;", "&")
            self.links.append((href, len(self.runs)))
        elif token.type == "link_close":
            self.link_ends()
        elif token.type == "image":
            self._text(_with_address(token.content, str(token.attrs.get("src", ""))))
        elif token.type == "code_inline":
            # WhatsApp formats nothing in code, and a mark around it may be shown.
            self.runs.append(Run(f"{token.markup}{token.content}{token.markup}", {}))
        elif token.type == "bare_url":
            # A mark at its end would belong to the address.
            self.runs.append(Run(token.content, {}))
        elif token.type == "tag":
            self._tag(token)
        elif token.type == "softbreak":
            self._new_line()
        elif token.type == "hardbreak":
            self._text("\n")
        else:
            self._text(_TILDES.sub(r"\1", _FOOTNOTE.sub(r"[\1]", token.content)))

    def link_ends(self) -> None:
        """Put a link's address behind its label."""
        if not self.links:
            return
        href, start = self.links.pop()
        label = "".join(run.text for run in self.runs[start:]).replace("&amp;", "&")
        if _with_address(label, href) == href:
            self.runs[start:] = [Run(href, {})]
        else:
            self._text(_with_address(label, href).removeprefix(label.strip()))

    def _text(self, text: str) -> None:
        if text:
            self.runs.append(Run(text, dict(self._styles)))

    def _new_line(self) -> None:
        if self.runs and not self.runs[-1].text.endswith("\n"):
            self._text("\n")

    def _style(self, mark: str, source: str, *, begins: bool) -> None:
        if begins:
            self._styles.append((mark, source))
            return
        for place in range(len(self._styles) - 1, -1, -1):
            if self._styles[place] == (mark, source):
                del self._styles[place]
                return

    def _tag(self, token: Token) -> None:
        name, begins = token.tag, token.nesting >= 0
        if name == "br":
            self._text("\n")
        elif name in (*BREAK_TAGS, *HEADINGS, "li"):
            self._new_line()
        if name == "li" and begins:
            self._text("- ")
        elif name in ("td", "th") and not begins:
            self._text(" ")
        elif name == "a" and begins:
            self.link_ends()
            self.links.append((_attribute(token.content, "href"), len(self.runs)))
        elif name == "a":
            self.link_ends()
        elif name == "img":
            self._text(
                _with_address(_attribute(token.content, "alt"), _attribute(token.content, "src"))
            )
        elif name in CODE_TAGS:
            self.runs.append(Run("`", {}))
        if name in STYLE_TAGS:
            self._style(STYLE_TAGS[name], f"<{name}>", begins=begins)


_ATTRIBUTE = re.compile(r"""\s(href|src|alt)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.I)


def _attribute(tag: str, name: str) -> str:
    found = {each[1].lower(): each[2] or each[3] or each[4] for each in _ATTRIBUTE.finditer(tag)}
    return (found.get(name) or "").replace("&amp;", "&")


def _with_address(label: str, address: str) -> str:
    """Return ``label (address)``, or the address alone if the label is the same or empty."""
    label = label.strip()
    if address.startswith(("#", "data:")) and label:
        return label
    for scheme in _HIDDEN_SCHEMES:
        address = address.removeprefix(scheme)
    is_same = label in ("", address, address.rstrip("/"), address.partition("://")[2].rstrip("/"))
    return address if is_same else f"{label} ({address})" if address else label
