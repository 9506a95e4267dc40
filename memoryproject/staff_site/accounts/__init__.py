"""The login of staff, and their permissions."""
