"""The plan: names resolved, plugins constructed, the grid of trials, and what a user should know of it."""
