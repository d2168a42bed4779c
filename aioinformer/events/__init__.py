"""Events: telling people what was done to an object."""

from .recorder import EventRecorder, EventRecorderState, EventType

__all__ = ["EventRecorder", "EventRecorderState", "EventType"]
