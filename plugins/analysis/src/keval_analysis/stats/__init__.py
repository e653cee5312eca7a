"""Statistics of a run: estimates per arm, paired effects, and the summary that holds them."""
