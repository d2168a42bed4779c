"""Kubernetes' functions in rules, and what the real server's compiler and the runtime say of faults."""

from __future__ import annotations

import pytest

from aioinformer.testing.schema.cel import (
    EvaluationError,
    InvalidRuleError,
    NotEnforcedError,
    compile_expression,
)
from aioinformer.testing.schema.node import Node

OBJECT, TEXT = Node(type="object"), Node(type="string")


@pytest.mark.parametrize(
    "rule",
    [
        "quantity('1') == quantity('1000m')",
        "quantity('50k').add(20).isGreaterThan(quantity('50k'))",
        "quantity('1Gi').asInteger() == 1073741824 && !isQuantity('x')",
        "quantity('1').compareTo(quantity('2')) == -1 && sign(quantity('-1')) == -1",
        "ip('10.0.0.1').family() == 4 && ip('::1').isLoopback() && !isIP('x') && ip.isCanonical('::1')",
        "cidr('10.0.0.0/8').containsIP('10.1.1.1') && cidr('10.0.0.0/8').containsIP(ip('10.1.1.1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('10.0.0.1/8').masked() == cidr('10.0.0.0/8')",
        "url('https://a.b:80/c?x=1').getHost() == 'a.b:80' && url('https://a.b:80/c').getPort() == '80'",
        "url('https://a/?x=1&x=2').getQuery()['x'] == ['1', '2'] && !isURL('a b')",
        "'abc123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2']",
        "'baac'.findAll('a*') == ['', 'aa', ''] && 'baac'.findAll('a*', 1) == ['']",
        "[1, 2].isSorted() && [1, 2].sum() == 3 && [2, 1].min() == 1 && ['a', 'b'].max() == 'b'",
        "sets.contains([1, 2], [1]) && sets.equivalent([1, 2], [2, 1, 1]) && !sets.intersects([1], [2])",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.2.3-a').isLessThan(semver('1.2.3'))",
        "isSemver('v1.0', true) && !isSemver('1.0') && semver('1.2.3').minor() == 2",
        "'%s is %d'.format(['a', 3]) == 'a is 3' && 'a,b'.split(',') == ['a', 'b']",
        "self.?missing.orValue(3) == 3",
    ],
)
def test_functions_of_kubernetes(rule: str) -> None:
    assert compile_expression(rule, OBJECT)({"a": 1}) is True


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("self.missing == 1", "no such key: missing"),
        ("1 / self.zero == 1", "division by zero"),
        ("[1][self.zero + 3] == 1", "index out of bounds: 3"),
        ("quantity('x') == quantity('1')", "quantities must match the regular expression"),
    ],
)
def test_errors_of_evaluation_have_the_real_servers_words(rule: str, why: str) -> None:
    with pytest.raises(EvaluationError, match=why):
        compile_expression(rule, OBJECT)({"zero": 0})


@pytest.mark.parametrize("rule", ["self.foo(", "self > 5", "nonsense(self)", "self + 'a'"])
def test_invalid_rules_do_not_compile(rule: str) -> None:
    with pytest.raises(InvalidRuleError):
        compile_expression(rule, TEXT)


@pytest.mark.parametrize("rule", ["[1].all(i, v, v > i)", "format.dns1123Label().validate('a').hasValue()"])
def test_rules_that_the_runtime_cannot_evaluate_differ_from_invalid_ones(rule: str) -> None:
    with pytest.raises(NotEnforcedError):
        compile_expression(rule, OBJECT)


def test_rule_with_more_iterations_than_the_runtime_does_is_a_fault_of_the_object() -> None:
    unique = compile_expression("self.l.all(x, self.l.exists_one(y, y == x))", OBJECT)
    assert unique({"l": [*range(90)]}) is True
    with pytest.raises(EvaluationError, match="Iteration budget exceeded"):
        unique({"l": [*range(1000)]})
