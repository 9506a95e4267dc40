"""Who of the staff may come in, and what each may do."""
