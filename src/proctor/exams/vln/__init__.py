"""Vision-and-language navigation."""
