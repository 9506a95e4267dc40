"""Memory for frameworks. Each module needs the extra of its name."""
