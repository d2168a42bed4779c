"""Reflector: list, then watch; when the version expires, relist into ``store.replace``.

Where to look:

- How long a relist waits: ``backoff.py`` (the delays), ``retry.py`` (waiting for a server that is away).
- Where a 410 leads: of a watch ``next_step.py``, of a list ``list_versions.refuses_version`` and ``Reflector._list``.
- What happens to an object that cannot be decoded: ``event_decoder.py``.
- At which version to list, and in what pages: ``list_versions.ListVersions``.
- How long a watch may be silent: ``watch.Pulse``.
- Lists as a stream (WatchList): ``initial.py``.
- A watch without a cache, which continues when it breaks: ``retry_watcher.py``.
- What is written to the store: ``store_writer.py``. What is logged and counted: ``stats.py``, ``state.py``.
"""

from .backoff import Backoff
from .options import ReflectorOptions
from .reflector import Reflector
from .retry_watcher import RetryWatcher
from .state import Phase, ReflectorState

__all__ = ["Backoff", "Phase", "Reflector", "ReflectorOptions", "ReflectorState", "RetryWatcher"]
