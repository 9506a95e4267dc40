"""What pages and REST resources of other packages use of those of cards."""

from sessions_app.cards.admin import MakeCards, card_link

__all__ = [
    "MakeCards",
    "card_link",
]
