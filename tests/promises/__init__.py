"""Tests of what the business promises."""
