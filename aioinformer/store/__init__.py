"""Store, Indexer and Lister: the local copy of a collection, and the ways to read it."""

from .index import IndexFunc, meta_namespace_index_func
from .indexer import NAMESPACE_INDEX, Indexer, Indexers
from .lister import Lister
from .mutation_cache import MutationCache
from .store import Store

__all__ = [
    "NAMESPACE_INDEX",
    "IndexFunc",
    "Indexer",
    "Indexers",
    "Lister",
    "MutationCache",
    "Store",
    "meta_namespace_index_func",
]
