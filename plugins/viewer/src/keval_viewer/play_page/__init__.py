"""A play as its page shows it: what columns do just now, what they answered, and how they stand."""
