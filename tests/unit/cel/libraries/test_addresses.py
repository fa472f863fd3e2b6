import pytest

from podium.cel import CompileError, EvaluationError
from tests.unit.cel.devices import holds


@pytest.mark.parametrize(
    "expression",
    [
        'ip("10.0.0.1").family() == 4',
        'ip("::1").family() == 6',
        'isIP("::1")',
        '!isIP("x")',
        '!isIP("::ffff:1.2.3.4")',
        '!isIP("fe80::1%eth0")',
        '!isIP("1.2.3.04")',
        'ip("127.0.0.1").isLoopback()',
        'ip("0.0.0.0").isUnspecified()',
        'ip("224.0.0.1").isLinkLocalMulticast()',
        'ip("169.254.1.1").isLinkLocalUnicast()',
        'ip("10.0.0.1").isGlobalUnicast()',
        '!ip("255.255.255.255").isGlobalUnicast()',
        '!ip("fe80::1").isGlobalUnicast()',
        'ip.isCanonical("::1")',
        '!ip.isCanonical("0::1")',
        'cidr("10.0.0.0/8").containsIP("10.1.2.3")',
        'cidr("10.0.0.0/8").containsIP(ip("10.1.2.3"))',
        '!cidr("10.0.0.0/8").containsIP("::1")',
        'cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")',
        '!cidr("10.1.0.0/16").containsCIDR(cidr("10.0.0.0/8"))',
        'cidr("10.1.2.3/16").masked() == cidr("10.1.0.0/16")',
        'cidr("10.1.2.3/16").ip() == ip("10.1.2.3")',
        'cidr("10.1.2.3/16").prefixLength() == 16',
        'string(cidr("10.0.0.0/8")) == "10.0.0.0/8"',
        'string(ip("0::1")) == "::1"',
        'isCIDR("10.0.0.0/8")',
        '!isCIDR("10.0.0.0/33")',
        '!isCIDR("10.0.0.0")',
        '!isCIDR("10.0.0.0/08")',
        'cidr("10.1.2.3/16") != cidr("10.1.0.0/16")',
    ],
)
def test_kinds_of_addresses_are_distinguished(expression):
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        'ip("1.2.3") == ip("1.2.3.4")',
        'cidr("1.2.3.4") == cidr("1.2.3.4/32")',
        'ip.isCanonical("x")',
        'cidr("10.0.0.0/8").containsIP("x")',
    ],
)
def test_value_that_is_refused_is_an_error(expression):
    with pytest.raises((CompileError, EvaluationError)):
        holds(expression)
