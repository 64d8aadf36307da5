"""Pictures of scenes and paths."""
