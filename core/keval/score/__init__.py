"""Scoring finished trials by metrics and judges; a scorer that fails gives no score, and never a low one."""
