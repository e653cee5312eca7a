"""What is used by hand, outside of a plan: sessions, interactive runs, and contexts served to any client."""
