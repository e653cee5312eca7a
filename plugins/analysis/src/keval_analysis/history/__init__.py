"""The history of a results directory: its finished runs as one SQLite file, and what they say over time."""
