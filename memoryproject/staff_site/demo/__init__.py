"""A small business with a month of conversations, for demos, tests and pictures in the docs."""
