"""One operator in four frameworks, which docs/comparison.md compares. Ours is examples/website."""
