"""Who this client is for the server, and how long its credentials are valid."""

from __future__ import annotations

import math

from .._core.certificates import expiry_of
from ..client.credentials import Access
from ..client.libraries import to_thread
from ..errors import ApiError
from ..operator.reviews import AUTHENTICATION, review
from .examination import Examination
from .findings import Finding, Level
from .times import judge_expiry, judge_token

CHECK = "credentials"
ANONYMOUS = "system:anonymous"


async def check_expiry(examination: Examination) -> list[Finding]:
    """Check how long the token and the client certificate are valid."""
    access = examination.access
    assert access is not None
    findings = []
    now = examination.server_time  # the server decides
    if access.expires < math.inf:
        findings.append(judge_token(access.expires, now, is_renewed=access.is_renewed, origin=access.origin))
    if (expires := await to_thread(_expiry_of_certificate, access)) is not None:
        do = "Renew it: kubeadm certs renew, or the command that wrote the kubeconfig"
        findings.append(judge_expiry(CHECK, "the client certificate", expires, now, do))
    return findings


def _expiry_of_certificate(access: Access) -> float | None:
    """Return when the client certificate expires; None if there is none. Blocks."""
    return None if access.tls.certificate is None else expiry_of(access.tls.certificate.read())


async def check_identity(examination: Examination) -> list[Finding]:
    """Ask the server who this client is.

    Raises:
        AioInformerError: The server does not answer.
    """
    try:
        status = await review(examination.client, AUTHENTICATION, "SelfSubjectReview")
    except ApiError as error:
        if error.status == 401:
            return [judge_refusal(str(error))]
        if error.status in (
            403,
            404,
        ):  # anonymous users may not ask, and servers before 1.28 have no such review
            return [judge_user("", is_forbidden=error.status == 403)]
        raise
    examination.user = str((status.get("userInfo") or {}).get("username") or "")
    return [judge_user(examination.user)]


def judge_refusal(message: str) -> Finding:
    """Return that the server does not accept the credentials, as its error says."""
    do = "Log in again, or correct the user of the kubeconfig's context; a token may be expired or of another cluster"
    return Finding(CHECK, Level.FAULT, f"the server does not accept the credentials: {message}", do)


def judge_user(user: str, *, is_forbidden: bool = False) -> Finding:
    """Return who this client is; ``""`` if the server does not say."""
    if user == ANONYMOUS or (not user and is_forbidden):
        do = "Give the kubeconfig's user a token, a client certificate or an exec plugin"
        return Finding(CHECK, Level.WARNING, "the requests are anonymous", do)
    if not user:
        return Finding(CHECK, Level.NOTE, "the server does not say who this user is")
    return Finding(CHECK, Level.OK, f"the server knows this user as {user}")
