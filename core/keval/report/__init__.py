"""What people see of a run: progress, tables and transcripts in the terminal."""
