"""Bringing a plan up: models resolved, servers started, what is there described and compared."""
