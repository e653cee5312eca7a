"""Formats of other tools: a module for each, which translates its files into keval's own words."""
