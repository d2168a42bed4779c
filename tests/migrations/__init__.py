"""Programs of others before and after they use aioinformer, under the same trouble: ``python -m tests.migrations``."""
