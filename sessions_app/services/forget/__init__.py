"""Forgets with proof: sweeps a text out of everything that was made of it, looks for it, and
leaves a receipt. See docs/forgetting.md."""
