"""The pages from which staff look after the server: /admin/operations/."""
