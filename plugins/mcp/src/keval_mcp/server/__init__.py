"""The side of the servers: starting and reaching them, and sessions that last as long as they are needed."""
