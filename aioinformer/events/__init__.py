"""Events: report to people what happened to an object."""

from .recorder import EventRecorder, EventRecorderState, EventType

__all__ = ["EventRecorder", "EventRecorderState", "EventType"]
