"""What staff do with conversations among themselves, one verb each."""
