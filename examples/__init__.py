"""Examples of aioinformer, one file per use. Each is a complete program: `python examples/quickstart.py`."""
