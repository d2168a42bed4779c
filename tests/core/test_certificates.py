"""certificates.py: when a certificate expires."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import trustme
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.certificates import expiry_of

CERTIFICATE = trustme.CA().issue_cert("a.example", not_after=datetime(2031, 5, 4, 3, 2, 1, tzinfo=UTC))
PEM = b"".join(blob.bytes() for blob in CERTIFICATE.cert_chain_pems)


@pytest.mark.parametrize("year", [2020, 2049, 2050, 2999])
def test_expiry_is_that_which_cryptography_reads(year: int) -> None:
    issued = trustme.CA().issue_cert("a.example", not_after=datetime(year, 2, 28, 23, 59, 58, tzinfo=UTC))
    pem = issued.cert_chain_pems[0].bytes()
    expected = x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()
    assert expiry_of(b"Bag Attributes: \xff\n" + issued.private_key_pem.bytes() + pem) == expected


def test_the_first_certificate_of_a_chain_counts() -> None:
    assert expiry_of(PEM) == datetime(2031, 5, 4, 3, 2, 1, tzinfo=UTC).timestamp()


@given(st.integers(0, len(PEM)), st.integers(0, len(PEM)), st.binary(max_size=8))
def test_a_damaged_text_is_read_or_has_no_date(begin: int, end: int, instead: bytes) -> None:
    result = expiry_of(PEM[:begin] + instead + PEM[end:])
    assert result is None or isinstance(result, float)


@pytest.mark.parametrize(
    "pem",
    [b"", b"no certificate", PEM[:100], b"-----BEGIN CERTIFICATE-----" * 38_000],
    ids=["empty", "text", "cut", "beginnings"],
)
def test_no_certificate_has_no_date(pem: bytes) -> None:
    assert expiry_of(pem) is None
