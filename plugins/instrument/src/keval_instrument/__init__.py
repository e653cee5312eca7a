"""`keval check`: an evaluation is an instrument, and this examines it."""
