"""Making a way smooth."""
