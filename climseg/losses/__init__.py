"""Losses: ``(logits, target) -> scalar``."""
