"""REST over what this app keeps by itself: memory documents."""
