"""The ways to reach the engine, and the tools that use them."""
