"""One attempt's way to one server: what it is offered, and what is recorded of it."""
