"""Deliveries under random kills: `make chaos`."""
