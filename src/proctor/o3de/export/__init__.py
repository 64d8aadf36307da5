"""Scenes and exams as files of an O3DE project."""
