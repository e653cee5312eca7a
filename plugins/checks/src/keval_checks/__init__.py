"""Checks of what a trial left: files, databases, services; and keval check."""
