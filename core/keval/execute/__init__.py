"""Execution: a plan is brought up, an executor runs its trials, and each is compared with what the tap recorded."""
