"""Presentation code of cards that pages and REST resources of other packages use."""

from sessions_app.cards.admin import MakeCards, card_link

__all__ = [
    "MakeCards",
    "card_link",
]
