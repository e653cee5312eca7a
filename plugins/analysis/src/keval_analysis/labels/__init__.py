"""Labels of people, which judges are held against: draws of answers to label, and anchors, graded again in each run."""
