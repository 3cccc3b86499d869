"""Scores of masks against labels."""
