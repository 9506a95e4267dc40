"""Pure rules about what is said: when two texts tell the same, and when one replaces another."""
