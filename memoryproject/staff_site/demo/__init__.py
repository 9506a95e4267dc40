"""A small business with a month of conversations: for trying the staff's room out, for tests and
for the pictures in the docs."""
