"""Instruction files, skills and plugins of coding agents as keval contexts."""
