"""Read one collection of an API server as bytes: ``ListWatch``.

- ``list_watch.py``: the requests. ``collection.py``: their paths and queries.
- ``pager.py``: whole lists, in pages.
- ``body.py`` and ``protobuf_body.py``: split the body of a list into items.
- ``events.py``, from ``lines.py`` (JSON) or ``frames.py`` (protobuf): the events of a watch.
- ``partial.py``: reduce objects to their metadata.
"""

from .list_watch import ListWatch

__all__ = ["ListWatch"]
