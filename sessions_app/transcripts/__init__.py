"""Transcripts as text (seed 000): the format, its rules, and how batches follow each other."""
