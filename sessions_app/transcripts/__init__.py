"""Transcripts as text (seed 000): the format, its rules, and the order of batches."""
