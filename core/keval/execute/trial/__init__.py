"""One trial: its attempts, what is checked of them, and what is kept."""
