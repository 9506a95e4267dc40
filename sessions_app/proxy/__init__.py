"""OpenAI's chat completions with this server's memory, for programs that change only their URL."""
