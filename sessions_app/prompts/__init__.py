"""Builds what the chat model reads. Pure: no Django here."""
