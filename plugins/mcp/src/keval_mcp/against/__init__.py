"""Conditions held against what they were at another commit of their repository."""
