"""The cards of sessions: when they are due, of what they are made, and where they are told."""
