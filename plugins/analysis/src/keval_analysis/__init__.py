"""From scores to findings: statistics, effects, comparisons, gates, power. Imported when asked for."""
