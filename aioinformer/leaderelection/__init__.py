"""Leader election: one of several candidates leads."""

from .elector import LeaderElector, LeaderElectorState

__all__ = ["LeaderElector", "LeaderElectorState"]
