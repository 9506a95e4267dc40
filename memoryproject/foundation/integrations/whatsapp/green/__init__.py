"""Green API: webhook bodies in, messages out."""
