"""Renew OIDC id-tokens with a refresh-token (kubectl's ``auth-provider: oidc``).

Not with the libraries' own code, which sends client secret and refresh-token over unverified TLS.
"""

from __future__ import annotations

import base64
import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from ..errors import ConfigError
from ..objects.nesting import DECODE_ERRORS, decode_any
from .credentials import WallClock, expiry_of_jwt
from .error_mapping import safe_cause, without_credentials
from .libraries import to_thread
from .response import encoding_of
from .sections import Section
from .tls import TLS
from .write_back import write_back

if TYPE_CHECKING:
    import aiohttp

logger = logging.getLogger(__name__)

_MARGIN = 60.0
_TIMEOUT = 30.0

LONGEST_ANSWER = 1024 * 1024
"""Bytes of the largest answer of an identity provider that is read."""


@dataclass(slots=True, eq=False)
class OidcTokens:
    """The tokens of a kubeconfig's OIDC user, including new ones that could not be written into the file."""

    _used: str = field(default="", init=False)
    _unwritten: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    async def renew(
        self, config: dict[str, Any], user: Section, user_name: str, yaml: Any, wall: WallClock
    ) -> str:
        """Return a valid id-token. Write new tokens into the kubeconfig, as a refresh-token may work only once.

        Args:
            config: The ``auth-provider.config`` section; updated in place.
            user: The user's section.
            user_name: The user's name.
            yaml: The library's yaml module.
            wall: The wall clock.

        Raises:
            ConfigError: The id-token is missing or expired, and cannot be renewed.
        """
        used = str(config.get("refresh-token") or "")
        is_known = bool(self._unwritten) and used == self._used
        if is_known:
            config.update(self._unwritten)
        new = await _refresh(config, user, wall)
        if new is not None:
            config.update(new)
            try:
                await to_thread(write_back, yaml, user.file, user_name, used, new)
                self._unwritten = {}
            except (ConfigError, OSError) as error:
                if not is_known:
                    logger.warning(
                        "kubeconfig %s: cannot write the new OIDC tokens of user %r into it: %s. "
                        "This client uses them; other programs may need a new login",
                        user.file,
                        user_name,
                        error,
                    )
                self._used, self._unwritten = used, {**(self._unwritten if is_known else {}), **new}
        return str(config["id-token"])


async def _refresh(config: Mapping[str, Any], user: Section, wall: WallClock) -> dict[str, str] | None:
    """Return new values for the provider's config, or None while its id-token is valid."""
    token = str(config.get("id-token") or "")
    if token and expiry_of_jwt(token) > wall() + _MARGIN:
        return None
    if not config.get("refresh-token") or not config.get("idp-issuer-url"):
        raise ConfigError("the OIDC id-token has expired and there is no refresh-token: log in again")
    import aiohttp  # the library has imported it already

    from .proxies import proxy_for
    from .resolver import Resolver
    from .sockets import Sockets

    issuer = str(config["idp-issuer-url"]).rstrip("/")
    context = await to_thread(_ssl_context, config, user)
    sockets = Sockets()
    connector = sockets.connector(ssl=context, resolver=Resolver())
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
    try:
        proxy = proxy_for(issuer)
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            headers={"Accept-Encoding": "identity"},
            auto_decompress=False,  # a megabyte of compression may be a gigabyte
        ) as session:
            async with session.get(
                f"{issuer}/.well-known/openid-configuration", raise_for_status=True, proxy=proxy
            ) as answer:
                endpoint = (await _read(answer))["token_endpoint"]
            tokens = await _exchange(session, endpoint, config, proxy)
        new = {"id-token": str(tokens["id_token"])}
    except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"OIDC: {issuer} gave no new id-token: {error or type(error).__name__}"
        ) from safe_cause(error)
    finally:
        await sockets.close()
    if tokens.get("refresh_token"):
        new["refresh-token"] = str(tokens["refresh_token"])
    return new


async def _exchange(
    session: aiohttp.ClientSession, endpoint: str, config: Mapping[str, Any], proxy: str | None
) -> Any:
    """Exchange the refresh-token for new tokens. Send the client's id in the header, and if refused in the form."""
    client, secret = str(config.get("client-id") or ""), str(config.get("client-secret") or "")
    form = {"grant_type": "refresh_token", "refresh_token": str(config["refresh-token"])}
    # RFC 6749, section 2.3.1
    basic = base64.b64encode(f"{quote_plus(client)}:{quote_plus(secret)}".encode()).decode()
    header = {"Authorization": f"Basic {basic}"}
    # A redirect would take the secrets to another address.
    async with session.post(
        endpoint, data=form, headers=header, proxy=proxy, allow_redirects=False
    ) as answer:
        if answer.ok:
            return await _read(answer)
    form |= {"client_id": client, "client_secret": secret}
    async with session.post(
        endpoint, data=form, raise_for_status=True, proxy=proxy, allow_redirects=False
    ) as answer:
        return await _read(answer)


async def _read(answer: aiohttp.ClientResponse) -> Any:
    """Return the JSON of an answer.

    Raises:
        ValueError: It redirects, is compressed, is too large, or is not JSON.
    """
    shown = without_credentials(str(answer.url))
    if answer.status >= 300:
        raise ValueError(
            f"{shown} redirects with status {answer.status}, which is not followed with a secret"
        )
    if encoding := encoding_of(answer):
        raise ValueError(
            f"the answer of {shown} is encoded as {encoding!r}, which the request does not accept"
        )
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > LONGEST_ANSWER:
            raise ValueError(f"the answer of {shown} is larger than {LONGEST_ANSWER} bytes")
    try:
        return decode_any(bytes(body))
    except DECODE_ERRORS as error:  # which may hold a token
        raise ValueError(f"the answer of {shown} is not JSON ({type(error).__name__})") from None


def _ssl_context(config: Mapping[str, Any], user: Section) -> ssl.SSLContext:
    """Return the TLS settings for the issuer. Blocks."""
    return TLS(replace(user, fields=dict(config)).pem("idp-certificate-authority")).context()
