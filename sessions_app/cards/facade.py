"""Public face of cards: what other packages may use."""

from sessions_app.cards.card_recall import CardHit, cards_recall, cards_retract
from sessions_app.cards.make_cards import cards_make
