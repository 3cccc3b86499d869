"""Prediction: logits to probabilities to mask files, the only door from tensors back to labelled arrays."""
