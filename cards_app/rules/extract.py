"""temporary"""

from collections.abc import Sequence

from cards_app.rules.lines import Line
from memoryproject.lib.shorten import cut_at_word


def extractive_summary(lines: Sequence[Line], *, longest: int) -> str:
    return cut_at_word("; ".join(f"{x.role}: {x.content}" for x in lines), longest)


def shortened_lines(lines: Sequence[Line], *, longest: int) -> str:
    if not lines:
        return ""
    share = max(longest // len(lines) - 1, 8)
    return "\n".join(cut_at_word(f"{x.role}: {x.content}", share) for x in lines)[:longest]
