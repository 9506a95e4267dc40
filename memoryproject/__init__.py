"""The memory server: settings, URLs, start-up, and the packages that all apps share."""

import os

# Many processes share the machine's cores: in each, more threads for a small product of matrices
# only wait for each other. It counts when numpy is imported, and this is imported before.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "1.6.0"
