"""Scenes and exams as files for O3DE."""
