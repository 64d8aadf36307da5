"""The protocols of policy servers."""
