"""Chat models behind an HTTP API as agents: prompts, tool calls, the three APIs and their client."""
