"""What staff read that isn't written where it is shown: see labels.py."""
