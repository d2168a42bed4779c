"""Whether the server has what the operator reads, and as its classes say."""

from __future__ import annotations

from ..operator.definitions import compare
from ..operator.preflight import missing_collections, required_collections_of
from .examination import Examination
from .findings import Finding, Level

CHECK = "definitions"


async def check_collections(examination: Examination) -> list[Finding]:
    """Check that the collections of the operator's informers exist."""
    if examination.manager is None:
        return []
    client = examination.client
    required = required_collections_of(examination.manager)
    optional = [collection for collection in examination.collections if collection not in required]
    missing = await missing_collections(client, required)
    absent = await missing_collections(client, optional)
    do = f"Install its definition: aioinformer manifests {examination.options.target} prints it"
    return [
        *(Finding(CHECK, Level.FAULT, text, do) for text in missing),
        *(Finding(CHECK, Level.NOTE, f"{text}: it is optional, and counts as empty") for text in absent),
    ] or [Finding(CHECK, Level.OK, "the server has all collections that the operator reads")]


async def check_definitions(examination: Examination) -> list[Finding]:
    """Compare the server's definitions with the operator's classes."""
    operator = examination.operator
    if operator is None or not operator.custom_resources():
        return []
    do = (
        f"If the class is newer, install its definition: aioinformer manifests {examination.options.target} prints it. "
        "If the server's is newer, run the newer operator"
    )
    differences, unread = await compare(examination.client, operator)
    findings = [Finding(CHECK, Level.WARNING, text, do) for text in differences]
    if unread:
        text = f"not compared with the class, because the server does not show them: {', '.join(unread)}"
        findings.append(Finding(CHECK, Level.NOTE, text))
    return findings or [Finding(CHECK, Level.OK, "the definitions are as the classes say")]
