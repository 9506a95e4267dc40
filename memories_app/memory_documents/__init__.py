"""Memory documents: context, decisions, interfaces, handoffs, and the stores that keep them."""
