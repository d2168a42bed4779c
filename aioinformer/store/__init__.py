"""Store, Indexer and Lister: the local copy of a collection, and how it is read."""

from .indexer import NAMESPACE_INDEX, Indexer, IndexFunc, meta_namespace_index_func
from .lister import Lister
from .store import Store

__all__ = ["NAMESPACE_INDEX", "IndexFunc", "Indexer", "Lister", "Store", "meta_namespace_index_func"]
