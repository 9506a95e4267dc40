"""Stores what sessions_app.importing reads from old files."""
