"""Convert a model's Markdown to what WhatsApp shows.

markdown-it-py reads the blocks and the marks. What isn't Markdown but stands in answers as well
(HTML tags, formulas, bare addresses) is read by rules of ours in the same parser.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markdown_it.rules_block.table import escapedSplit
from markdown_it.token import Token

from memoryproject.foundation.integrations.whatsapp.markdown_marks import (
    BOLD,
    ITALIC,
    Run,
    lines_of,
    marked,
    runs_of,
)
from memoryproject.foundation.integrations.whatsapp.markdown_parser import markdown_parser

# Invisible, and WhatsApp refuses some of them.
_CONTROLS = dict.fromkeys(code for code in (*range(32), *range(127, 160)) if code not in (9, 10))

# The parser drops what stands in more lists or quotations than that.
_DEEP = re.compile(r"^((?:[ \t]*[>*+-]){20})[ \t>*+-]+", re.MULTILINE)

_MARKDOWN_NAMES = ("markdown", "md")
# Text that is no code: it has none of its signs, and ends with a sentence.
_SENTENCES = re.compile(
    r"\s*[^\W\d_](?:[^{}<>=;|\\$#_/`~^\t ]|[ ](?! ))*[.!?…。！？][\"'”’)]{0,2}\s*"
)
_RULE = "———"
# Of a block of code, with what some sites take behind it.
_LANGUAGE = re.compile(r"[\w+#./-]*(?:\s*[{\[].*|\s+\w+=.*)?", re.ASCII)
_AMOUNT = re.compile(r"[\d$€£¥₪]")
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}


def to_whatsapp(markdown: str) -> str:
    """Return the text in WhatsApp's format. Code keeps its content; words are never lost."""
    text = re.sub(r"\r\n?", "\n", markdown).translate(_CONTROLS)
    text = _DEEP.sub(r"\1 ", text)
    lines = _Lines(_without_outer_fence(text))
    return "\n".join(lines.render()).strip("\n")


def _without_outer_fence(text: str) -> str:
    """Return the text of an answer that stands in one fence as a whole.

    A fence inside it ends the outer one too early for a parser; the last line's opens nothing then.
    """
    blocks = [token for token in markdown_parser().parse(text) if token.level == 0]
    fences = [token for token in blocks if token.type == "fence"]
    if not fences or blocks[0] is not fences[0] or blocks[-1] is not fences[-1]:
        return text
    first, last = fences[0], fences[-1]
    name = first.info.strip().lower()
    if first is last:
        is_text = name in _MARKDOWN_NAMES
        if name in ("", "text", "plaintext") and text.rstrip().endswith(first.markup):
            # Code has no bold words, tables or links.
            inside = markdown_parser().parse(first.content)
            children = (child for token in inside for child in token.children or ())
            shown = {token.type for token in (*inside, *children)}
            is_text = bool(shown & {"strong_open", "table_open", "link_open"})
            is_text = is_text or _SENTENCES.fullmatch(first.content) is not None
        return first.content if is_text else text
    if name in _MARKDOWN_NAMES and not last.content.strip() and not last.info:
        lines = text.strip().split("\n")
        return "\n".join(lines[1:-1])
    return text


# Blocks: each paragraph, heading, table, rule and block of code gives lines, behind the marks of
# the lists and quotations that it stands in.


@dataclass
class _Container:
    """A list item or quotation: the mark before its first line, and before the others."""

    first: str
    rest: str
    line: int
    is_begun: bool = False


@dataclass
class _Lines:
    """The lines of one text, as they are made from its tokens."""

    source: str
    done: list[str] = field(default_factory=list)
    inside: list[_Container] = field(default_factory=list)
    before: list[_Container] = field(default_factory=list)
    numbers: list[tuple[str, int] | None] = field(default_factory=list)
    end: int = 0

    def render(self) -> list[str]:
        """Return all lines of the text."""
        env: dict[str, dict[str, dict[str, str]]] = {}
        source_lines = self.source.split("\n")
        tokens = markdown_parser().parse(self.source, env)
        if _escape_pipes(tokens, source_lines):
            tokens = markdown_parser().parse("\n".join(source_lines), env)
        place = 0
        while place < len(tokens):
            token = tokens[place]
            if token.type == "table_open":
                start = place
                while tokens[place].type != "table_close":
                    place += 1
                self._write(token, _table(tokens[start:place], source_lines))
            else:
                self._block(token, tokens[place - 1] if place else None)
            place += 1
        self._unused(env.get("references", {}), tokens)
        return self.done

    def _block(self, token: Token, previous: Token | None) -> None:
        kind = token.type
        if kind == "inline":
            is_heading = previous is not None and previous.type == "heading_open"
            self._bullet(token)
            runs = runs_of(token.children or [], {BOLD: BOLD} if is_heading else {})
            self._write(token, lines_of(runs))
        elif kind == "fence":
            self._fence(token)
        elif kind == "hr":
            self._write(token, [_RULE])
        elif kind == "blockquote_open":
            # WhatsApp has no quotation in a quotation.
            is_inner = any(each.first == "> " for each in self.inside)
            mark = "" if is_inner else "> "
            self.inside.append(_Container(mark, mark, _first_line(token)))
        elif kind in ("bullet_list_open", "ordered_list_open"):
            self.numbers.append(None)
        elif kind in ("bullet_list_close", "ordered_list_close"):
            self.numbers.pop()
        elif kind == "list_item_open":
            bullet = "+ " if token.markup == "+" else "- "
            marker = f"{self._number(token.info)}{token.markup} " if token.info else bullet
            self.inside.append(_Container(marker, " " * len(marker), _first_line(token)))
        elif kind in ("list_item_close", "blockquote_close"):
            if not self.inside[-1].is_begun and self.inside[-1].first:
                token.map = [self.inside[-1].line, self.inside[-1].line + 1]
                self._write(token, [""])
            self.inside.pop()

    def _number(self, written: str) -> str:
        """Return the number of a list's next item: the written one, unless it is repeated."""
        before = self.numbers[-1]
        is_repeated = before is not None and before[0] == written
        shown = str(before[1] + 1) if before is not None and is_repeated else written
        self.numbers[-1] = (written, int(shown))
        return shown

    def _bullet(self, token: Token) -> None:
        """Set an item's bullet; the box of a task stands in its place."""
        children = token.children or []
        box = _BOXES.get(children[0].content[:4]) if children else None
        # "+ 5 °C" is no item: with another bullet it would be five degrees below zero.
        if self.inside and self.inside[-1].first == "+ " and not _AMOUNT.match(token.content):
            self.inside[-1].first = "- "
        if box and self.inside and not self.inside[-1].is_begun:
            children[0].content = children[0].content[4:]
            item = self.inside[-1]
            item.first = box if item.first == "- " else item.first + box

    def _fence(self, token: Token) -> None:
        code = token.content.removesuffix("\n")
        if not _LANGUAGE.fullmatch(token.info.strip()):
            # The text begins beside the fence.
            code = "\n".join(filter(None, [token.info.strip(), code]))
        if token.info.strip().lower() in _MARKDOWN_NAMES:
            self._write(token, _Lines(code).render())
        elif "```" in code:
            # It would end the block for WhatsApp.
            self._write(token, code.split("\n"))
        else:
            self._write(token, ["```", *code.split("\n"), "```"], is_code=True)

    def _write(self, token: Token, lines: Sequence[str], *, is_code: bool = False) -> None:
        start, end = token.map or (self.end, self.end)
        if self.done and start > self.end:
            shared = [each for each in self.inside if any(each is one for one in self.before)]
            self.done.append("".join(each.rest for each in shared).rstrip())
        for line in lines:
            # Code isn't indented in a list: it would be changed.
            marks = (
                (each.rest if not is_code or each.rest == "> " else "")
                if each.is_begun
                else each.first
                for each in self.inside
            )
            text = "".join(marks) + line
            self.done.append(text if is_code else text.rstrip())
            for each in self.inside:
                each.is_begun = True
        self.end, self.before = end, list(self.inside)

    def _unused(self, defined: dict[str, dict[str, str]], tokens: Sequence[Token]) -> None:
        """Add the addresses of references that no link shows."""
        children = (child for token in tokens for child in token.children or ())
        shown = {child.attrs.get("href") or child.attrs.get("src") for child in children}
        for label, about in defined.items():
            if about["href"] not in shown:
                title = f" {about['title']}" if about["title"] else ""
                self.done.append(f"{label.lower()}: {about['href']}{title}")


def _first_line(token: Token) -> int:
    return token.map[0] if token.map else 0


_CODE = re.compile(r"`[^`]*`")
_PIPE = re.compile(r"(?<!\\)\|")


def _escape_pipes(tokens: Sequence[Token], source: list[str]) -> bool:
    """Keep a pipe in code from ending a table's cell, as models mean it; return whether any did."""
    before = list(source)
    rows = (token.map for token in tokens if token.type == "tr_open" and token.map)
    for place, _ in rows:
        source[place] = _CODE.sub(lambda code: _PIPE.sub(r"\|", code[0]), source[place])
    return source != before


def _table(tokens: Sequence[Token], source: Sequence[str]) -> list[str]:
    """Return a table's rows as lines: *first cell*: the others, with the headings where needed."""
    rows = [list(_row(part, source)) for part in _split_rows(tokens)]
    names, body = rows[0], rows[1:]
    lines = []
    if len(names) <= 2:
        heading = ": ".join(_plain(cell) for cell in names if _plain(cell))
    else:
        heading = _plain(names[0])
    if heading:
        lines.append(marked([Run(heading, {ITALIC: "_"})]) if body else heading)
    if not body:
        lines += [_cell(cell) for cell in names[1:] if len(names) > 2 and _plain(cell)]
    for row in body:
        first, *others = row
        values = []
        for at, cell in enumerate(others, start=1):
            name = _plain(names[at]) if len(names) > 2 and at < len(names) else ""
            if _plain(cell):
                values.append(f"{name}: {_cell(cell)}" if name else _cell(cell))
        title = _cell([Run(run.text, run.styles | {BOLD: BOLD}) for run in first])
        joined = ", ".join(values)
        # A row may have more cells than the heading.
        if title and (joined or len(names) > 1):
            joined = f"{title}: {joined}" if joined else title
        lines.append(joined or _cell(first))
    return [line for line in lines if line]


def _split_rows(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    row: list[Token] = []
    for token in tokens:
        if token.type == "tr_open":
            row = []
        row.append(token)
        if token.type == "tr_close":
            yield row


def _row(tokens: Sequence[Token], source: Sequence[str]) -> Iterator[list[Run]]:
    """Yield a row's cells, also those that the heading has no column for."""
    cells = [token for token in tokens if token.type == "inline"]
    yield from (runs_of(cell.children or [], {}) for cell in cells)
    if tokens[0].map:
        written = escapedSplit(source[tokens[0].map[0]].strip().lstrip("> "))
        written = written[1 if not written[0].strip() else 0 :]
        written = written[: -1 if written and not written[-1].strip() else None]
        for more in written[len(cells) :]:
            yield runs_of(markdown_parser().parseInline(more.strip())[0].children or [], {})


def _plain(cell: Sequence[Run]) -> str:
    return " ".join("".join(run.text for run in cell).split())


def _cell(cell: Sequence[Run]) -> str:
    return marked([Run(run.text.replace("\n", " "), run.styles) for run in cell]).strip()
