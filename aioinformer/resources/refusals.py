"""Error answers as errors that name the object (k8s.io/apimachinery ``api/errors``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..client.error_mapping import name_request
from ..errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    RefusedError,
    TooManyRequestsError,
)

_BY_STATUS: dict[int, type[RefusedError]] = {
    403: ForbiddenError,
    404: ObjectNotFoundError,
    409: ConflictError,
    422: InvalidError,
    429: TooManyRequestsError,
}


@contextmanager
def raise_refusals(verb: str, resource: str, key: str = "") -> Iterator[None]:
    """Wrap a request: add the request to its errors, and raise 4xx answers except 401 as RefusedErrors."""
    try:
        with name_request(f"{verb} {resource} {key}".rstrip()):
            yield
    except RefusedError:
        raise
    except ApiError as error:
        if not 400 <= error.status < 500 or error.status == 401:
            raise
        kind = _BY_STATUS.get(error.status, RefusedError)
        if error.reason == "AlreadyExists":
            kind = AlreadyExistsError
        refused = kind(error.status, error.reason, error.message, error.details)
        refused.context, refused.key, refused.resource = error.context, key, resource
        raise refused from error
