"""Heuristic masks of tropical cyclones and atmospheric rivers, and masks that came with a file."""
