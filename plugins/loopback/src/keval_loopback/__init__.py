"""Serving on loopback: a port, a server that ends with its context, and which requests it must refuse."""

from keval_loopback.loopback import inherited, listen, refusal

__all__ = ["inherited", "listen", "refusal"]
