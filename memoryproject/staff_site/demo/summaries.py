"""The text that replaces a model's summary in the demo."""

from __future__ import annotations

SUMMARY_OF = (
    "Emma Clarke plans her wedding on 18 June at the Carmel Forest with about 90 guests. She chose "
    "a lemon sponge with raspberry filling in three tiers (1,450 shekels) and two trays of small "
    "pastries (620 shekels). After the tasting she asked what is needed: a deposit of 30 percent "
    "until the end of the month and the final number of guests two weeks before."
)
