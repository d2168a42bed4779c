"""DeltaFIFO and RealFIFO: what has happened since it was last processed, by object or event by event."""

from .delta_fifo import DeltaFIFO
from .real_fifo import RealFIFO

__all__ = ["DeltaFIFO", "RealFIFO"]
