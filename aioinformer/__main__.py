"""``python -m aioinformer``."""

from .cli import main

main()
