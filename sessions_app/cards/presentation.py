"""Functions of cards for pages and REST resources of other packages."""

from sessions_app.cards.admin import MakeCards, card_link
