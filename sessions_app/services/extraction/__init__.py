"""Learning from what people say: what is due, how it is read, stored and taken back."""
