"""Webhooks of an Operator: admission, and conversion between versions of a CustomResource.

API server ─► WebhookServer (TLS) or ASGI ─► WebhookApp ─► your function of a review, or of an object
"""

from ...errors import Denied
from .admission import AdmissionOptions
from .app import WebhookApp
from .configuration import Reached
from .review import AdmissionReview, UserInfo
from .server import WebhookServer
from .trying import Reviewed

__all__ = [
    "AdmissionOptions",
    "AdmissionReview",
    "Denied",
    "Reached",
    "Reviewed",
    "UserInfo",
    "WebhookApp",
    "WebhookServer",
]
