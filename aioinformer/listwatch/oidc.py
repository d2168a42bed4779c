"""OIDC: an id-token out of a refresh-token (kubectl's ``auth-provider: oidc``).

The libraries would send client secret and refresh token over TLS that they do not verify.
"""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from ..failures import cause_of
from .libraries import to_thread
from .sections import Section
from .sources import Wall, expiry_of_jwt
from .tls import TLS

if TYPE_CHECKING:
    import aiohttp

_MARGIN = 60.0
_TIMEOUT = 30.0


async def refreshed(config: Mapping[str, Any], directory: str, wall: Wall) -> dict[str, str] | None:
    """New values for the provider's config, or None while its id-token is good.

    Args:
        config: The ``auth-provider.config`` section.
        directory: Of the kubeconfig, which a relative path is relative to.
        wall: The wall clock.

    Raises:
        ConfigError: There is no good id-token, and none can be had.
    """
    token = str(config.get("id-token") or "")
    if token and expiry_of_jwt(token) > wall() + _MARGIN:
        return None
    if not config.get("refresh-token") or not config.get("idp-issuer-url"):
        raise ConfigError("the OIDC id-token has expired and there is no refresh-token: log in again")
    import aiohttp  # the library has imported it by now

    from .proxies import proxy_for
    from .resolver import Resolver
    from .sockets import Sockets

    issuer = str(config["idp-issuer-url"]).rstrip("/")
    context = await to_thread(_trust, config, directory)
    sockets = Sockets()
    connector = aiohttp.TCPConnector(ssl=context, resolver=Resolver(), socket_factory=sockets)
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
    try:
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, proxy=proxy_for(issuer)
        ) as session:
            async with session.get(
                f"{issuer}/.well-known/openid-configuration", raise_for_status=True
            ) as answer:
                endpoint = (await answer.json(content_type=None))["token_endpoint"]
            said = await _ask(session, endpoint, config)
        new = {"id-token": str(said["id_token"])}
    except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"OIDC: {issuer} gave no new id-token: {error or type(error).__name__}"
        ) from cause_of(error)
    finally:
        await sockets.close()
    if said.get("refresh_token"):
        new["refresh-token"] = str(said["refresh_token"])
    return new


async def _ask(session: aiohttp.ClientSession, endpoint: str, config: Mapping[str, Any]) -> Any:
    """Exchange the refresh-token; who we are goes into the header, or into the form where that is refused."""
    client, secret = str(config.get("client-id") or ""), str(config.get("client-secret") or "")
    form = {"grant_type": "refresh_token", "refresh_token": str(config["refresh-token"])}
    basic = base64.b64encode(f"{client}:{secret}".encode()).decode()
    async with session.post(endpoint, data=form, headers={"Authorization": f"Basic {basic}"}) as answer:
        if answer.ok:
            return await answer.json(content_type=None)
    form |= {"client_id": client, "client_secret": secret}
    async with session.post(endpoint, data=form, raise_for_status=True) as answer:
        return await answer.json(content_type=None)


def _trust(config: Mapping[str, Any], directory: str) -> ssl.SSLContext:
    section = Section(dict(config), os.path.join(directory, ""))
    return TLS(section.pem("idp-certificate-authority")).context()
