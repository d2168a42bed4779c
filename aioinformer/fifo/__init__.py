"""DeltaFIFO: what has happened to each object since it was last processed."""

from .delta_fifo import DeltaFIFO

__all__ = ["DeltaFIFO"]
