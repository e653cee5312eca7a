"""Models while a run goes on: requests pass the exchange and a gate, within a budget, at a price."""
