"""What the agent can be asked to do: one file for each tool."""
