"""The operator of examples/migrations/kopf, on kopf and on aioinformer: the same story of both."""
