"""The queues between reading and processing: DeltaFIFO groups changes by object, RealFIFO keeps every event."""

from .delta_fifo import DeltaFIFO
from .real_fifo import RealFIFO

__all__ = ["DeltaFIFO", "RealFIFO"]
