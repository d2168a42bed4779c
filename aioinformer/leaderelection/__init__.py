"""Leader election: of many candidates one leads."""

from .elector import LeaderElector, LeaderElectorState

__all__ = ["LeaderElector", "LeaderElectorState"]
