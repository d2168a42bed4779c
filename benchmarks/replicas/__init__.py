"""Replicas that share the work, measured. See docs/benchmarks-replicas.md."""
