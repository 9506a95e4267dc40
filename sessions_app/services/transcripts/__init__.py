"""Saves batches of transcripts, and writes them (seed 000)."""
