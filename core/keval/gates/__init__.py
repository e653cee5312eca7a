"""Gates: what a run must show, read from the config and from flags, and the verdicts on it."""
