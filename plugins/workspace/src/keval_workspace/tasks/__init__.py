"""What trials work in and leave: workspaces and checks of a plan. A run loads it only if its config asks for either."""
