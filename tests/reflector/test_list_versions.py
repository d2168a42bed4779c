"""At which version the reflector lists, and in what pages."""

from __future__ import annotations

from aioinformer.listwatch.pager import PAGE_SIZE
from aioinformer.reflector.list_versions import ListVersions


class TestVersions:
    def test_first_list_is_at_any_version_later_ones_at_the_last(self) -> None:
        """C61, C62."""
        versions = ListVersions(0)
        assert versions.relist_version("") == "0"
        assert versions.relist_version("17") == "17"

    def test_after_a_refused_version_lists_are_at_the_most_recent_until_a_success(self) -> None:
        """C62."""
        versions = ListVersions(0)
        versions.unavailable = True
        assert versions.relist_version("17") == ""
        assert versions.rewatch_version("17") == ""
        versions.record_success("", paginated=False)
        assert versions.relist_version("17") == "17"
        assert versions.rewatch_version("17") == "17"

    def test_watch_list_starts_at_the_last_version(self) -> None:
        """C61: and the first at the most recent."""
        assert ListVersions(0).rewatch_version("") == ""

    def test_pages_only_if_the_watch_cache_does_not_answer(self) -> None:
        versions = ListVersions(0)
        assert versions.page_size("0") == PAGE_SIZE == 500
        assert versions.page_size("") == PAGE_SIZE
        assert versions.page_size("17") == 0

    def test_pages_stick_after_a_paged_list_at_any_version(self) -> None:
        """C82."""
        versions = ListVersions(0)
        versions.record_success("0", paginated=True)
        assert versions.page_size("17") == PAGE_SIZE

    def test_pages_do_not_stick_after_other_lists(self) -> None:
        """C82."""
        versions = ListVersions(0)
        versions.record_success("", paginated=True)
        assert versions.page_size("17") == 0

    def test_user_page_size_always_applies(self) -> None:
        versions = ListVersions(7)
        assert {versions.page_size(version) for version in ("", "0", "17")} == {7}
