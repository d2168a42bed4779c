"""An operator whose webhooks refuse the kinds that a cluster itself needs."""

from __future__ import annotations

from aioinformer import KubeObject
from aioinformer.operator import AdmissionReview, Denied, Operator, Request

operator = Operator("guarded-cluster")


@operator.controller("configmaps")
async def reconcile(request: Request[KubeObject]) -> None: ...


@operator.validate("pods")
@operator.validate("nodes")
@operator.validate("namespaces")
def refuse(review: AdmissionReview[KubeObject]) -> None:
    raise Denied("is refused")
