"""Plugins for tests: an installed distribution that is found by its path."""
