"""The memory server: settings, URLs, start-up, and the packages that all apps share."""

__version__ = "0.1.0"
