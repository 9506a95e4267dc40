"""Second implementations of integrations, which only tests use."""
