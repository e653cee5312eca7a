"""What is found of a run: the summary with its effects, and what people say of answers. No trial needs it."""
