"""Switching the embedding model, keeping its vectors whole, and making them again."""
