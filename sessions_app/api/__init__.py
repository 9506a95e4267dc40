"""REST resources of conversations, and of data that spans apps."""
