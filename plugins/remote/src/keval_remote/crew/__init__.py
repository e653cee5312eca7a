"""Workers elsewhere: what they are brought up with, run and score. A run loads it only if its executor has such."""
