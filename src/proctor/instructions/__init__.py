"""Instructions that a person can follow: written from geometry, said in words, read back and checked."""
