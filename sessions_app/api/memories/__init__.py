"""REST over long-term memories: lists, one, many, recall, export and import."""
