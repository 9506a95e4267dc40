"""The rules of the memory card (seed 001), without Django: see docs/cards.md."""
