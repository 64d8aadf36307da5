"""Planning in a process of its own."""
