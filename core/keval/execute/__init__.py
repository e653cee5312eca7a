"""Execution: a plan is brought up, its trials are run by an executor, and what came of them is held to the truth."""
