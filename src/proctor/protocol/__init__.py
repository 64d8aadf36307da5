"""What evaluator and agent say to each other, and how it is written on the wire."""
