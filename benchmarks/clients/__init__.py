"""The benchmarks' clients that are written in Python: ``python -m benchmarks.clients NAME ...``, see CONTRACT.md."""
