"""Rules for webhooks in configurations and definitions, with the real server's causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aioinformer.objects.labels import label_key_faults
from aioinformer.testing.errors import cause, field_duplicate, field_invalid, field_required
from aioinformer.testing.rules.validation import dns_1035_faults, subdomain_fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aioinformer.testing.objects import Object

    _Faults = Iterator[dict[str, str]]

_FORM = "; desired format: https://host[/path]"
_MOST_CONDITIONS = 64
_WILDCARDS = {"apiGroups": "API groups", "apiVersions": "API versions", "operations": "operations"}


def configuration_faults(obj: Object) -> _Faults:
    """Yield the causes for mistakes in a MutatingWebhookConfiguration or ValidatingWebhookConfiguration."""
    names: set[str] = set()
    for number, hook in enumerate(obj.get("webhooks") or ()):
        place, name = f"webhooks[{number}]", hook.get("name") or ""
        if name and (why := subdomain_fault(name)):
            yield field_invalid(f"{place}.name", name, why)
        elif name and name.count(".") < 2:
            why = "should be a domain with at least three segments separated by dots"
            yield field_invalid(f"{place}.name", name, why)
        for index, rule in enumerate(hook.get("rules") or ()):
            yield from _rule_faults(f"{place}.rules[{index}]", rule)
        if not 1 <= (seconds := hook["timeoutSeconds"]) <= 30:
            why = "the timeout value must be between 1 and 30 seconds"
            yield field_invalid(f"{place}.timeoutSeconds", seconds, why)
        yield from client_config_faults(f"{place}.clientConfig", hook.get("clientConfig") or {})
        yield from _condition_faults(f"{place}.matchConditions", hook.get("matchConditions") or ())
        versions = hook.get("admissionReviewVersions") or []
        yield from review_version_faults(f"{place}.admissionReviewVersions", versions)
        if name and name in names:
            yield field_duplicate(f"{place}.name", name)
        names.add(name)


def client_config_faults(path: str, config: Object) -> _Faults:
    """Yield the causes for mistakes in how a webhook is reached."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield field_required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_faults(f"{path}.url", url)
    elif service is not None:
        if not 0 < (port := service["port"]) < 65536:
            why = "port is not valid: must be between 1 and 65535, inclusive"
            yield field_invalid(f"{path}.service.port", port, why)
        yield from _path_faults(f"{path}.service.path", service.get("path") or "/")


def review_version_faults(path: str, versions: Sequence[str]) -> _Faults:
    """Yield the causes for mistakes in the versions of reviews that a webhook understands."""
    seen: set[str] = set()
    for number, version in enumerate(versions):
        if version in seen:
            yield field_invalid(f"{path}[{number}]", version, "duplicate version")
            continue
        seen.add(version)
        for why in dns_1035_faults(version):
            yield field_invalid(f"{path}[{number}]", version, why)
    if versions and {"v1", "v1beta1"}.isdisjoint(versions):
        yield field_invalid(path, versions, "must include at least one of v1, v1beta1")


def _url_faults(path: str, text: str) -> _Faults:
    try:
        url = urlsplit(text)
        if " " in url.netloc:
            raise ValueError('invalid character " " in host name')
    except ValueError as error:
        yield field_required(path, f'url must be a valid URL: parse "{text}": {error}{_FORM}')
        return
    user, _, host = url.netloc.rpartition("@")
    if url.scheme != "https":
        yield field_invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not host:
        yield field_invalid(path, host, f"host must be specified{_FORM}")
    if user:
        yield field_invalid(path, user, "user information is not permitted in the URL")
    if url.fragment:
        yield field_invalid(path, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        yield field_invalid(path, url.query, "query parameters are not permitted in the URL")


def _path_faults(path: str, given: str) -> _Faults:
    if given == "/":
        return
    if not given.startswith("/"):
        yield field_invalid(path, given, "must start with a '/'")
    for number, step in enumerate(given[1:].removesuffix("/").split("/")):
        if not step:
            yield field_invalid(path, given, f"segment[{number}] may not be empty")
        elif why := subdomain_fault(step):
            yield field_invalid(path, given, f"segment[{number}]: {why}")


def _rule_faults(path: str, rule: Object) -> _Faults:
    for name in ("operations", "apiGroups", "apiVersions", "resources"):
        values = rule.get(name) or []
        if not values:
            yield field_required(f"{path}.{name}")
        if name in _WILDCARDS and "*" in values and len(values) > 1:
            why = f"if '*' is present, must not specify other {_WILDCARDS[name]}"
            yield field_invalid(f"{path}.{name}", values, why)
        if name in ("apiVersions", "resources"):
            for number, value in enumerate(values):
                if not value:
                    yield field_required(f"{path}.{name}[{number}]")
    yield from _resource_faults(f"{path}.resources", rule.get("resources") or [])


def _resource_faults(path: str, resources: list[str]) -> _Faults:
    seen: set[str] = set()
    for number, name in enumerate(resources):
        resource, _, subresource = name.partition("/")
        for wildcard in (f"{resource}/*", f"*/{subresource}"):
            if subresource and wildcard in seen:
                why = f"if '{wildcard}' is present, must not specify {name}"
                yield field_invalid(f"{path}[{number}]", name, why)
        seen.add(name)
    if "*/*" in resources and len(resources) > 1:
        yield field_invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and any(pattern != "*" and "/" not in pattern for pattern in resources):
        why = "if '*' is present, must not specify other resources without subresources"
        yield field_invalid(path, resources, why)


def _condition_faults(path: str, conditions: Sequence[Any]) -> _Faults:
    if len(conditions) > _MOST_CONDITIONS:
        why = f"Too many: {len(conditions)}: must have at most {_MOST_CONDITIONS} items"
        yield cause("FieldValueTooMany", why, path)
    names: set[str] = set()
    for number, condition in enumerate(conditions):
        place, name = f"{path}[{number}]", condition.get("name") or ""
        expression = (condition.get("expression") or "").strip()
        if expression and (why := _expression_fault(expression)):
            yield field_invalid(f"{place}.expression", expression, why)
        elif condition.get("expression") and not expression:
            yield field_required(f"{place}.expression")
        for why in label_key_faults(name) if name else ():
            yield field_invalid(f"{place}.name", name, why)
        if name and name in names:
            yield field_duplicate(f"{place}.name", name)
        names.add(name)


def _expression_fault(expression: str) -> str:
    """Return why a match condition does not compile; `""` if it does, or if this server cannot tell."""
    from aioinformer.testing.schema.cel import (  # slow to import
        InvalidRuleError,
        NotEnforcedError,
        condition,
    )

    try:
        condition(expression)
    except InvalidRuleError as error:
        return str(error)
    except NotEnforcedError:
        pass
    return ""
