"""Scoring: metrics and judges over finished trials; what fails is unscored, never a low score."""
