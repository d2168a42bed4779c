"""Proxies from the environment. The expected values come from golang.org/x/net/http/httpproxy 0.49."""

from __future__ import annotations

import traceback

import pytest

from aioinformer import ConfigError
from aioinformer.client.proxies import proxy_for

API, SELF, V4, V6 = (
    f"https://{host}:6443" for host in ("api.example.com", "example.com", "10.1.2.3", "[fd00::1]")
)


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("proxy", "used"),
    [
        ("http://proxy:3128", "http://proxy:3128"),
        ("HTTP://proxy:3128", "http://proxy:3128"),
        ("https://proxy/", "https://proxy/"),
        ("proxy.corp:3128", "http://proxy.corp:3128"),
        ("proxy", "http://proxy"),
        ("user:secret@proxy:3128", "http://user:secret@proxy:3128"),
        ("[::1]:3128", "http://[::1]:3128"),
        ("jürgen:ł@proxy:3128", "http://j%C3%83%C2%BCrgen:%C3%85%C2%82@proxy:3128"),  # for aiohttp's Latin-1
        ("", None),
    ],
)
def test_forms_of_a_proxy_variable(monkeypatch: pytest.MonkeyPatch, proxy: str, used: str | None) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    assert proxy_for(API) == used
    assert proxy_for("http://api.example.com") is None  # HTTP_PROXY is not set
    assert proxy_for(API, "HTTP://proxy:3128") == "http://proxy:3128"


def test_proxy_variable_that_is_not_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@[::1")
    with pytest.raises(ConfigError, match=r"^the proxy http://\[::1 cannot be used: expected a URL"):
        proxy_for(API)
    for written in ("http://ada:secret@proxy:99999", "http://ada:secret/more@proxy:1", "http://"):
        for configured in (written, None):
            monkeypatch.setenv("HTTPS_PROXY", written)
            with pytest.raises(ConfigError, match=r"^the proxy http://(proxy:\d+)? cannot be used") as caught:
                proxy_for(API, configured)
            assert "secret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "proxy", ["socks5://user:secret@proxy:1080", "user:secret@proxy", "ftp://user:sec/ret@proxy"]
)
def test_other_kinds_of_proxy_are_refused(proxy: str) -> None:
    with pytest.raises(ConfigError, match=r"^the proxy (\w+://)?proxy(:1080)? cannot be used"):
        proxy_for(API, proxy)


def test_which_variable_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://lower")
    monkeypatch.setenv("no_proxy", "10.1.2.3")
    assert (proxy_for(API), proxy_for(V4)) == ("http://lower", None)
    monkeypatch.setenv("HTTPS_PROXY", "http://upper")
    monkeypatch.setenv("NO_PROXY", "fd00::1")
    assert (proxy_for(API), proxy_for(V4), proxy_for(V6)) == ("http://upper", "http://upper", None)
    assert proxy_for(V6, "http://configured") == "http://configured"


@pytest.mark.parametrize(
    ("excepted", "url", "proxied"),
    [
        ("example.com", API, False),
        ("example.com", SELF, False),
        ("example.com", "https://notexample.com:6443", True),
        (".example.com", API, False),
        (".example.com", SELF, True),
        ("*.example.com", API, False),
        ("*.example.com", SELF, True),
        ("*example.com", API, True),
        ("other.com, API.Example.com ,", API, False),
        ("example.com 10.1.2.3", V4, True),
        ("api.example.com:6443", API, False),
        ("api.example.com:443", API, True),
        ("example.com:443", "https://example.com", False),
        ("example.com:80", "http://example.com", False),
        ("example.com:", API, False),
        ("*.example.com:6443", API, False),
        (":6443", API, True),
        ("*", API, False),
        ("other.com,*", V6, False),
        ("*:6443", API, True),
        ("10.1.2.3", V4, False),
        ("10.1.2.3:6443", V4, False),
        ("10.1.2.3:443", V4, True),
        ("1.2.3", V4, True),
        ("10.0.0.0/8", V4, False),
        ("10.1.2.4/31", V4, True),
        ("10.0.0.0/8", "https://[::ffff:10.1.2.3]", False),
        ("10.0.0.0/99", V4, True),
        ("10.0.0.0/8", API, True),
        ("fd00::1", V6, False),
        ("fd00:0::1", V6, False),
        ("[fd00::1]:6443", V6, False),
        ("[fd00::1]:443", V6, True),
        ("[fd00::1]", V6, True),
        ("fd00::/8", V6, False),
        ("fd00::/8", V4, True),
        ("", API, True),
        ("", "http://localhost:8001", False),
        ("", "http://127.0.0.2:8001", False),
        ("", "http://[::1]:8001", False),
    ],
)
def test_no_proxy_excludes_hosts(
    monkeypatch: pytest.MonkeyPatch, excepted: str, url: str, proxied: bool
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", excepted)
    assert proxy_for(url) == ("http://proxy:3128" if proxied else None)
