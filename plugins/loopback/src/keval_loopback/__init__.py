"""Serving on loopback: a port, a server that ends with its context, and which requests it must refuse."""

from keval_loopback.listening import inherited, listen
from keval_loopback.refusing import refusal

__all__ = ["inherited", "listen", "refusal"]
