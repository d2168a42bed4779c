"""At which version to list, in what pages, and which versions a server refuses."""

from __future__ import annotations

from ..errors import ApiError
from ..listwatch.pager import PAGE_SIZE
from ..objects.meta import NOT_OLDER_THAN


def refuses_version(error: ApiError, resource_version: str = "") -> bool:
    """Whether the server refused a list's version: it has expired, is ahead of the server, or is not a valid version
    (as from a damaged event; only for a list at such a version)."""
    is_invalid = error.status in (400, 422) and resource_version not in ("", "0")
    return error.is_expired or error.is_too_large_resource_version or is_invalid


class ListVersions:
    """Decides at which version to list next, and in what pages (client-go ``Reflector.list``).

    Args:
        page_size: The user's page size; 0 for upstream's rules.
    """

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._paginated = False
        self.unavailable = False
        """The server refused the last version: ask for the most recent state, from etcd if necessary."""

    def relist_version(self, last: str) -> str:
        """Return the version to list at."""
        if self.unavailable:
            return ""
        return last or "0"

    def rewatch_version(self, last: str) -> str:
        """Return the version to start a WatchList at."""
        return "" if self.unavailable else last

    def page_size(self, resource_version: str) -> int:
        """Return the page size for a list at a version.

        The server's watch cache answers a list at a version above "0" only without a limit, and that spares etcd. If
        the first list came in pages, there is no watch cache: use pages.
        """
        if self._page_size:
            return self._page_size
        return 0 if resource_version not in ("", "0") and not self._paginated else PAGE_SIZE

    def match(self, resource_version: str) -> str:
        """Return the resourceVersionMatch of a list at a version.

        With the user's page size, the server would return the state at exactly that version. After a restart of its
        watch cache no watch could continue from there. NotOlderThan lets it return a newer state.
        """
        return NOT_OLDER_THAN if self._page_size and resource_version not in ("", "0") else ""

    def record_success(self, resource_version: str, paginated: bool) -> None:
        """Record that a list at this version succeeded."""
        self.unavailable = False
        if resource_version == "0" and paginated:
            self._paginated = True
