"""The memory server: settings, edges and small helpers of the whole."""

__version__ = "0.1.0"
