"""The floor as a map: of scenes, clouds, scans and files."""
