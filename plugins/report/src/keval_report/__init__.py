"""What the terminal shows of a run: progress, tables and transcripts."""
