"""The dates of certificates. Python's ssl reads them of certificates that it has verified, and of no others."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
_SEQUENCE, _INTEGER, _VERSION = 0x30, 0x02, 0xA0
_FORMATS = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}
"""UTCTime and GeneralizedTime, as RFC 5280 restricts them."""


def expiry_of(pem: bytes) -> float | None:
    """Return when the first certificate of a PEM text expires, in seconds since 1970; None if it has none."""
    begin = pem.find(_BEGIN)
    end = pem.find(_END, begin)
    if begin < 0 or end < 0:
        return None
    try:
        der = ssl.PEM_cert_to_DER_cert(pem[begin : end + len(_END)].decode("ascii"))
        certificate, _ = _read(der, _SEQUENCE)
        rest, _ = _read(certificate, _SEQUENCE)
        if rest[0] == _VERSION:
            _, rest = _read(rest, _VERSION)
        for tag in (_INTEGER, _SEQUENCE, _SEQUENCE):  # serial number, algorithm, issuer
            _, rest = _read(rest, tag)
        validity, _ = _read(rest, _SEQUENCE)
        _, after = _read(validity, validity[0])
        text, _ = _read(after, after[0])
        return datetime.strptime(text.decode("ascii"), _FORMATS[after[0]]).replace(tzinfo=UTC).timestamp()
    except (ValueError, IndexError, KeyError):  # UnicodeDecodeError and binascii.Error are ValueErrors
        return None


def _read(der: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return the content of the first value, and what follows it.

    Raises:
        ValueError: It has another tag, or is cut off.
        IndexError: There is none.
    """
    size, begin = der[1], 2
    if size & 0x80:
        begin += size & 0x7F
        size = int.from_bytes(der[2:begin], "big")
    content = der[begin : begin + size]
    if der[0] != tag or len(content) < size:
        raise ValueError("not DER")
    return content, der[begin + size :]
