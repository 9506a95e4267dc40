"""The set-up in the browser: steps that lead through what a new installation needs."""
