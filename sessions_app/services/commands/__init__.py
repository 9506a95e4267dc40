"""The commands that people can write to the assistant, one a file."""
