"""The schema held against the running server by schemathesis, which makes up the calls."""
