"""The Meta Cloud API: webhook bodies in, messages out."""
