"""The webhooks that the embedded server calls: for admission, and for conversion between versions.

Writer, Cluster ─► Admission (per request) ─► Hook (does it match?) ─► Caller (HTTPS) ─► your webhook
"""

from aioinformer.testing.webhooks.admission import Admission, Webhooks

__all__ = ["Admission", "Webhooks"]
