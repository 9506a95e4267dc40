"""REST over conversations, and over what spans apps."""
