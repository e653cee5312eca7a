"""Serving on loopback: a port, a server that ends with its context, and which requests it must refuse."""
