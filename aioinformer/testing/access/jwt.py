"""Signed tokens (JWT with ES256), and the key that verifies them as `/openid/v1/jwks` shows it."""

from __future__ import annotations

import base64
import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.errors import MissingExtraError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_COORDINATE = 32
"""Bytes of each coordinate of a point of P-256, and of each half of a signature."""


class SigningKey:
    """A key that signs and verifies tokens; it is generated at first use.

    Raises:
        MissingExtraError: At first use, if `cryptography` is not installed.
    """

    def sign(self, claims: dict[str, Any]) -> str:
        """Return a token with these claims."""
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        header = {"alg": "ES256", "kid": self.public["kid"]}
        signed = b".".join(
            _encode(msgspec.json.encode(part, order="deterministic")) for part in (header, claims)
        )
        halves = decode_dss_signature(self._private.sign(signed, self._algorithm))
        signature = b"".join(half.to_bytes(_COORDINATE, "big") for half in halves)
        return b".".join([signed, _encode(signature)]).decode()

    def claims(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a token that this key has signed, or None for any other text."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

        signed, _, signature = token.rpartition(".")
        _, dot, payload = signed.partition(".")
        try:
            halves = _decode(signature)
            numbers = (int.from_bytes(half, "big") for half in (halves[:_COORDINATE], halves[_COORDINATE:]))
            self._private.public_key().verify(
                encode_dss_signature(*numbers), signed.encode(), self._algorithm
            )
        except (InvalidSignature, ValueError):
            return None
        claims: dict[str, Any] = msgspec.json.decode(_decode(payload)) if dot else {}
        return claims

    @cached_property
    def public(self) -> dict[str, str]:
        """The public key as a JSON web key."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        key = self._private.public_key()
        der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        point = key.public_numbers()
        return {
            "use": "sig",
            "kty": "EC",
            "kid": _encode(hashlib.sha256(der).digest()).decode(),
            "crv": "P-256",
            "alg": "ES256",
            "x": _encode(point.x.to_bytes(_COORDINATE, "big")).decode(),
            "y": _encode(point.y.to_bytes(_COORDINATE, "big")).decode(),
        }

    @cached_property
    def _private(self) -> EllipticCurvePrivateKey:
        try:
            from cryptography.hazmat.primitives.asymmetric import ec
        except ImportError as error:
            raise MissingExtraError("cryptography", "a token of a service account") from error
        return ec.generate_private_key(ec.SECP256R1())

    @cached_property
    def _algorithm(self) -> Any:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.hashes import SHA256

        return ec.ECDSA(SHA256())


def _encode(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
