"""What is built of many operations."""
