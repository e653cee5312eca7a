"""The side of the agents: the tap over HTTP, and in memory for agents in keval's own process."""
