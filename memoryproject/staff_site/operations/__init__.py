"""The pages on which staff operate the server: /admin/operations/."""
