"""What to do with aioinformer, a file a use. Each runs by itself: `python examples/quickstart.py`."""
