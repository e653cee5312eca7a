"""What is found of a run: its summary, people's reviews, and what changed since it began. No trial needs it."""
