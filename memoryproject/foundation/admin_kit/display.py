"""Functions that show texts, states and JSON in the admin.

Everything is escaped. Each text gets its own direction, so that Hebrew runs from the right.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

SHORT = 200
LEAST_COST = 0.01
MAX_PLACES = 6


def column(title: Any, show: Callable[[Any], Any], *, ordering: Any = None) -> Any:
    """Return a column of a list, or a line of a row's page, for an attribute of an admin.

    ``show`` gets the row. ``ordering``: what the list is sorted by; None: it can't be.
    """

    @admin.display(description=title, ordering=ordering)
    def shown(_admin: Any, row: Any) -> Any:
        return show(row)

    return shown


def shown_text(text: str) -> SafeString:
    """Return the whole text, with its line breaks."""
    return format_html('<span class="said" dir="auto">{}</span>', text or "–")


def shown_short(text: str, longest: int = SHORT) -> SafeString:
    """Return the text's beginning, for lists."""
    return shown_text(text if len(text) <= longest else text[: longest - 1] + "…")


def shown_labelled(label: str, text: str) -> SafeString:
    """Return a text for lists after its label, which stands apart from the text's own direction.

    Without a label the text alone.
    """
    if not label:
        return shown_short(text)
    shown = shown_short(text) if text else ""
    return format_html('<span class="quiet">[{}]</span> {}', label, shown)


def shown_mark(text: Any, tone: str = "") -> SafeString:
    """Return a translated word as a mark. ``tone``: good, warn, bad or nothing."""
    return format_html('<span class="state {}">{}</span>', tone, text)


def moment_shown(at: datetime) -> str:
    """Return a day and a time, short, in the reader's time zone."""
    return date_format(timezone.localtime(at), "SHORT_DATETIME_FORMAT")


def cost_shown(cost: float | Decimal) -> str:
    """Return a sum of costs in MODEL_CURRENCY, to the hundredth."""
    if 0 < cost < LEAST_COST:
        return _("under %(cost)s") % {"cost": _in_currency(LEAST_COST, 2)}
    return _in_currency(cost, 2)


def small_cost_shown(cost: float | Decimal) -> str:
    """Return the cost of one answer in MODEL_CURRENCY, with two significant digits."""
    places = 2 if not cost else min(max(1 - math.floor(math.log10(cost)), 2), MAX_PLACES)
    return _in_currency(cost, places)


def _in_currency(cost: float | Decimal, places: int) -> str:
    # It cuts the digits of a Decimal off instead of rounding them.
    amount = number_format(round(Decimal(str(cost)), places), places, force_grouping=True)
    return f"{settings.MODEL_CURRENCY}\N{NO-BREAK SPACE}{amount}"


def shown_json(value: Any) -> SafeString:
    if value in (None, {}, []):
        return SafeString("–")
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return format_html('<pre class="data" dir="auto">{}</pre>', text)


def shown_table(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> SafeString:
    """Return a table. Its cells are texts, or marked safe already."""
    body = format_html_join(
        "",
        "<tr>{}</tr>",
        ((format_html_join("", "<td>{}</td>", ((cell,) for cell in row)),) for row in rows),
    )
    head = format_html_join("", "<th>{}</th>", ((title,) for title in titles))
    # Focusable, so that the keyboard can scroll it if it is long.
    frame = '<div class="long" tabindex="0"><table class="replay">{}{}</table></div>'
    return format_html(frame, format_html("<thead><tr>{}</tr></thead>", head), body)


def shown_link(address: str, title: str) -> SafeString:
    return format_html('<a href="{}">{}</a>', address, title)
