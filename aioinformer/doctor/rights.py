"""Rights that the operator needs and does not have, and those that it has and does not need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ..operator import Operator, Right, RunOptions
from ..operator.preflight import Needed, in_words, list_needed, missing_rights
from ..operator.reviews import AUTHORIZATION, review
from ..operator.rights import REVIEW_TOKENS
from ..operator.webhook_registration import registration_rights
from .examination import Examination
from .findings import Finding, Level

SERVICE_ACCOUNT = "system:serviceaccount:"

MOST_LISTED = 12
"""Rights that a finding names."""

REVIEWS = ("selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews")
"""What all users may create."""


class Rule(msgspec.Struct, rename="camel"):
    """A rule of a SelfSubjectRulesReview."""

    verbs: list[str]
    api_groups: list[str] = []
    resources: list[str] = []
    resource_names: list[str] = []


async def check_rights(examination: Examination) -> list[Finding]:
    """Compare the rights that the operator declares with those that this user has."""
    if examination.manager is None:
        return []
    client, options, user = examination.client, examination.options, examination.user
    needed = [*list_needed(examination.operator, options, examination.manager)]
    missing = await missing_rights(client, needed)
    findings = [judge_missing(user, missing, options.manifests_command)]
    if examination.operator is not None:
        spaces = options.watched or (client.namespace,)
        declared = [
            *(needed_right.right for needed_right in needed),
            *_optional_rights(examination.operator, options),
        ]
        findings += [
            await _check_superfluous(examination, namespace, declared) for namespace in dict.fromkeys(spaces)
        ]
        if options.watched and (elsewhere := await _find_elsewhere(examination, needed)):
            findings.append(judge_superfluous(user, "all namespaces", elsewhere, options.manifests_command))
    return findings


def _optional_rights(operator: Operator, options: RunOptions) -> list[Right]:
    """Return the rights that options of ``aioinformer run`` need, which doctor may not have been given."""
    name = options.webhook_configuration or operator.name
    return [*operator.rights(sharding=True), *registration_rights(operator, name), *REVIEW_TOKENS]


async def _check_superfluous(examination: Examination, namespace: str, declared: Iterable[Right]) -> Finding:
    spec = {"namespace": namespace}
    status = await review(examination.client, AUTHORIZATION, "SelfSubjectRulesReview", spec=spec)
    rules = msgspec.convert(status.get("resourceRules") or [], list[Rule])
    extra = superfluous_rights(rules, declared)
    return judge_superfluous(examination.user, namespace, extra, examination.options.manifests_command)


async def _find_elsewhere(examination: Examination, needed: Iterable[Needed]) -> list[str]:
    """Return the rights that this user has in all namespaces, and needs in some."""
    limited = [
        Needed(needed_right.right)
        for needed_right in needed
        if needed_right.right.namespaced and needed_right.namespace
    ]
    missing = {
        (needed_right.right.group, needed_right.right.resource, verb)
        for needed_right in await missing_rights(examination.client, limited)
        for verb in needed_right.right.verbs
    }
    return [
        str(msgspec.structs.replace(needed_right.right, verbs=verbs))
        for needed_right in dict.fromkeys(limited)
        if (
            verbs := tuple(
                verb
                for verb in needed_right.right.verbs
                if (needed_right.right.group, needed_right.right.resource, verb) not in missing
            )
        )
    ]


def superfluous_rights(rules: Iterable[Rule], declared: Iterable[Right]) -> list[str]:
    """Return the rights that rules give and that are not declared, such as ``"delete, get secrets"``.

    Args:
        rules: What a user may do.
        declared: What it needs. Wildcards of rules cover more than any declaration.
    """
    rights = [*declared]
    extra: dict[str, set[str]] = {}
    for group, resource, verb, names in _single_rights(rules):
        if group in ("authorization.k8s.io", "authentication.k8s.io") and resource in REVIEWS:
            continue
        if any(_covers(right, group, resource, verb, names) for right in rights):
            continue
        if (group, resource, verb) == ("*", "*", "*"):
            return ["everything (cluster-admin)"]
        of_names = f" {'|'.join(names)}" if names else ""
        extra.setdefault(f"{resource}{f'.{group}' if group else ''}{of_names}", set()).add(verb)
    return [f"{', '.join(sorted(verbs))} {resource}" for resource, verbs in sorted(extra.items())]


def _single_rights(rules: Iterable[Rule]) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    for rule in rules:
        for group in rule.api_groups:
            for resource in rule.resources:
                for verb in rule.verbs:
                    yield group, resource, verb, tuple(rule.resource_names)


def _covers(right: Right, group: str, resource: str, verb: str, names: tuple[str, ...]) -> bool:
    """Return whether a declared right covers one verb of a rule. A rule cannot limit ``create`` to names."""
    if (right.group, right.resource) != (group, resource) or verb not in right.verbs:
        return False
    return not right.names or verb == "create" or (bool(names) and set(names) <= set(right.names))


def judge_missing(user: str, missing: list[Needed], command: str) -> Finding:
    """Return which rights are missing."""
    name = user or "this user"
    if not missing:
        return Finding("rights", Level.OK, f"{name} has the rights that the operator needs")
    do = f"Grant them: {command} prints the rules"
    return Finding("rights", Level.FAULT, f"{name} may not {in_words(missing)}", do)


def judge_superfluous(user: str, where: str, extra: list[str], command: str) -> Finding:
    """Return which rights are not needed. People may have more than an operator; its account should not.

    Args:
        user: How the server calls this user.
        where: The namespace.
        extra: The rights in words.
        command: Prints what the operator needs.
    """
    name = user or "this user"
    if not extra:
        return Finding("rights", Level.OK, f"{name} has no other rights in {where}")
    more = f" and {len(extra) - MOST_LISTED} more" if len(extra) > MOST_LISTED else ""
    text = f"in {where} {name} has rights that the operator does not need: {'; '.join(extra[:MOST_LISTED])}{more}"
    if not user.startswith(SERVICE_ACCOUNT):
        do = "Run doctor as the operator's service account, in its pod or with its token, to check that account"
        return Finding("rights", Level.NOTE, text, do)
    do = f"Remove them from its roles, or declare them by Uses: {command} prints what it needs"
    return Finding("rights", Level.WARNING, text, do)
