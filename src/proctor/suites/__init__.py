"""Exams that come with Proctor, and the code that builds them."""
