"""Authentication: the user of a bearer token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.access.accounts import ISSUER, TokenError
from aioinformer.testing.users import ANONYMOUS, User, user_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aioinformer.testing.access.accounts import Accounts
    from aioinformer.testing.objects import Object


class Authenticator:
    """Knows the users of bearer tokens.

    Args:
        known: Returns the user of a token that the test has set, or None.
        accounts: Knows the tokens of service accounts.
        tokenless: The user of requests without a token.
    """

    def __init__(self, known: Callable[[str], User | None], accounts: Accounts, tokenless: User) -> None:
        self._known = known
        self._accounts = accounts
        self._tokenless = tokenless

    def identify(self, token: str | None) -> User:
        """Return the user of a token; anonymous with an unknown token."""
        try:
            return self._tokenless if token is None else self._user(token, ())[0]
        except TokenError:
            return user_of(ANONYMOUS)

    def review(self, token: str, audiences: Sequence[str]) -> Object:
        """Return the status of a TokenReview for some audiences, or for the API server's own."""
        try:
            user, shared = self._user(token, audiences)
        except TokenError as error:
            return {"user": {}, "error": str(error)}
        return {"authenticated": True, "user": user.info, "audiences": shared}

    def _user(self, token: str, audiences: Sequence[str]) -> tuple[User, list[str]]:
        user = self._known(token)
        if user is None:
            return self._accounts.user(token, audiences)
        if audiences and ISSUER not in audiences:
            raise TokenError("invalid bearer token")
        return user, [ISSUER]
