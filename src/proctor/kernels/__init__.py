"""All functions that are compiled to machine code, and nothing else; maps and navigation call them."""
