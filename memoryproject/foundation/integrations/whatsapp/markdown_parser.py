"""The parser of models' Markdown: CommonMark with tables, and the rules that we add.

HTML tags, formulas and bare addresses aren't CommonMark, but stand in answers as well.
"""

import json
import re
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_inline import StateInline, emphasis

from memoryproject.foundation.integrations.whatsapp.markdown_marks import KNOWN_TAGS


@cache
def markdown_parser() -> MarkdownIt:
    """Return the parser; it holds nothing of what it reads."""
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 50})
    parser.enable(["table", "strikethrough"])
    # Indented lines are no code in a chat, and a line of --- below a text is a rule.
    parser.disable(["code", "lheading", "html_block", "html_inline"])
    parser.block.ruler.at("reference", _reference)
    parser.inline.ruler.at("emphasis", _emphasis)
    parser.inline.ruler.before("escape", "formula", _formula)
    parser.inline.ruler.push("tag", _tag)
    parser.inline.ruler.push("bare_url", _bare_url)
    # Addresses are shown to people, not percent-encoded.
    parser.normalizeLink = str  # type: ignore[method-assign, assignment]
    parser.normalizeLinkText = str  # type: ignore[method-assign, assignment]
    return parser


def _reference(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read the definition of a link's address; that of a footnote is a text."""
    is_footnote = state.src.startswith("[^", state.bMarks[start] + state.tShift[start])
    return not is_footnote and reference(state, start, end, silent)


_NOT_FIRST, _NOT_LAST = (*")]}.,;:!?/\\|",), (*"([{/\\|^",)


def _emphasis(state: StateInline, silent: bool) -> bool:
    """Read marks as CommonMark does, but ** may also stand between punctuation and a letter.

    Languages without spaces between words need it, and models write "**Note:**text".
    """
    start, count = state.pos, len(state.delimiters)
    if not emphasis.tokenize(state, silent):
        return False
    added = state.delimiters[count:]
    before, after = state.src[max(start - 1, 0) : start], state.src[state.pos : state.pos + 1]
    inside = before + after
    is_sum = len(inside) == 2 and inside.isascii() and inside.isalnum()
    if state.src[start] == "*" and is_sum and (len(added) == 1 or inside.isdigit()):
        # "5*3", also where another one follows in the next line.
        for delimiter in added:
            delimiter.open = delimiter.close = False
    elif state.src[start] == "*" and len(added) > 1:
        for delimiter in added:
            delimiter.open = bool(after.strip())
            delimiter.close = bool(before.strip())
    elif state.src[start] == "*":
        # The stars of patterns and notes: "*.txt", "/*/", "^.*$", "(*)".
        (delimiter,) = added
        delimiter.open &= after not in _NOT_FIRST and before not in (".", "^")
        delimiter.close &= before not in _NOT_LAST
    return True


_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,15})((?:\s[^<>]{0,2000})?)/?>")
_RAISED_TAG = re.compile(r"<sup>([0-9+-]{1,9})</sup>", re.IGNORECASE)
# A longer comment is shown: looking further each time would cost much.
_MAX_COMMENT = 10_000


def _tag(state: StateInline, silent: bool) -> bool:
    """Read an HTML tag or comment; what only looks like a tag is a text."""
    if state.src.startswith("<!--", state.pos):
        end = state.src.find("-->", state.pos + 4, state.pos + _MAX_COMMENT)
        if end > 0:
            state.pos = end + 3
        return end > 0
    if raised := _RAISED_TAG.match(state.src, state.pos):
        # 10<sup>6</sup> is not 106.
        if not silent:
            state.push("text", "", 0).content = raised[1].translate(_RAISED)
        state.pos = raised.end()
        return True
    found = _TAG.match(state.src, state.pos)
    if found is None or found.group(2).lower() not in KNOWN_TAGS:
        return False
    if len(found.group(2)) == 1 and found.group(3).strip() and "=" not in found.group(3):
        # "a <b and c> d" compares.
        return False
    if not silent:
        token = state.push("tag", found.group(2).lower(), 0)
        token.nesting = -1 if found.group(1) else 0
        token.content = found.group()
    state.pos = found.end()
    return True


_ADDRESS = re.compile(r"://[^\s<>*\[\]`|]*[^\s<>*\[\]`|_~]")


def _bare_url(state: StateInline, silent: bool) -> bool:
    """Read an address: what looks like a mark in it is none."""
    scheme = re.search(r"https?$", state.src[max(state.pos - 5, 0) : state.pos], re.IGNORECASE)
    found = _ADDRESS.match(state.src, state.pos) if scheme else None
    if scheme is None or found is None:
        return False
    if not (silent or state.pending.endswith(scheme.group())):
        # Its first letter was escaped.
        return False
    if not silent:
        state.pending = state.pending.removesuffix(scheme.group())
        address = found.group().replace("&amp;", "&")
        state.push("bare_url", "", 0).content = scheme.group() + re.sub(
            r"\\([_&~])", r"\1", address
        )
    state.pos = found.end()
    return True


# Formulas.

_MAX_FORMULA = 2000
_ENDS = {"$$": "$$", "\\(": "\\)", "\\[": "\\]"}
_DOLLARS = re.compile(r"(?<![\w$])\$(?=[^\s$])([^$\n]{0,300}?[^\s$\\])\$(?![\w$])")
_FORMULA_SIGN = re.compile(r"[\\^_=+<>{}]|^[a-zA-Z]$|^-?[a-zA-Z0-9]+ ?[-*/] ?[a-zA-Z0-9]+$")


def _formula(state: StateInline, silent: bool) -> bool:
    """Read $$…$$, \\(…\\), \\[…\\] and $…$; "$5 and $6" are prices."""
    start = state.pos
    opener = state.src[start : start + 2]
    if opener in _ENDS:
        end = state.src.find(_ENDS[opener], start + 2, start + _MAX_FORMULA)
        content, after = state.src[start + 2 : max(end, start + 2)].strip(), end + 2
        is_formula = content and (opener == "$$" or _is_formula(content))
    else:
        found = _DOLLARS.match(state.src, start)
        content, after = (found.group(1), found.end()) if found else ("", 0)
        is_formula = _is_formula(content) and not re.match(r"[\d.,]+(?:\s|$)", content)
    if not is_formula:
        return False
    if not silent:
        state.push("text", "", 0).content = _shown_formula(content)
    state.pos = after
    return True


def _is_formula(content: str) -> bool:
    return len(content) < _MAX_FORMULA and bool(
        _FORMULA_SIGN.search(content) or content.replace(".", "").isdigit()
    )


_SIGNS: dict[str, str] = json.loads(
    Path(__file__).with_name("latex_signs.json").read_text(encoding="utf-8")
)
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]{0,200})\}\{([^{}]{0,200})\}")
_ROOT = re.compile(r"\\sqrt\{([^{}]{0,200})\}")
_POWER = re.compile(r"\^(?:\{(\d{1,9})\}|(\d))")
_RAISED = str.maketrans("0123456789+-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻")


def _shown_formula(content: str) -> str:
    """Return a LaTeX formula as a line of text."""
    text = _ROOT.sub(r"√(\1)", content)
    text = _FRACTION.sub(lambda found: "/".join(map(_operand, found.groups())), text)
    text = _POWER.sub(lambda found: (found.group(1) or found.group(2)).translate(_RAISED), text)
    text = re.sub(r"\\([a-zA-Z]+)", lambda found: _SIGNS.get(found[1], found[1]), text)
    text = re.sub(r"\\([\\,;:!])", " ", text)
    text = re.sub(r"\\([^a-zA-Z])|[{}]", r"\1", text)
    return " ".join(text.split())


def _operand(text: str) -> str:
    return f"({text})" if re.search(r"[^\w.\\]", text) else text
