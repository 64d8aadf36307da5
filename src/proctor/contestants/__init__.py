"""Contestants that call the evaluator instead of being called: people in a browser, agents over MCP."""
