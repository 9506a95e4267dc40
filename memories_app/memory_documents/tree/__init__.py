"""Memory documents as files: a folder for each category, and one for the archive."""
