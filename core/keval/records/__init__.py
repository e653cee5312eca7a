"""What flows through a run and what is written of it: plain frozen data."""
