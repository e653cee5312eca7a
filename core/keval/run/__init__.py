"""From an evaluation to a run: plan, preflight, execute, score, and the directory that holds it."""
