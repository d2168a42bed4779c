"""Sharding: replicas that share the work. See docs/replicas.md."""

from .placement import keys_in, shard_by_of, slot_in
from .sharding import ShardBy, Sharding
from .share import Claim, Share
from .state import ShardingState

__all__ = ["Claim", "ShardBy", "Share", "Sharding", "ShardingState", "keys_in", "shard_by_of", "slot_in"]
