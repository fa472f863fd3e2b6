import pytest

from podium.cel import Quantity
from podium.cel.errors import EvaluationError
from podium.cel.libraries import versions
from podium.cel.values import (
    FALSE_KEY,
    NONE,
    TRUE_KEY,
    Optional,
    UInt,
    equals,
    from_key,
    has_key,
    int64,
    key_of,
    uint64,
)
from podium.objects import quantity


def test_bools_are_keys_of_their_own():
    assert (key_of(True), key_of(False)) == (TRUE_KEY, FALSE_KEY)
    assert from_key(key_of(True)) is True
    assert not has_key({1: "one"}, True)
    assert has_key({1: "one"}, UInt(1))
    assert has_key({1: "one"}, 1.0)
    assert not has_key({1: "one"}, 1.5)


def test_equality_is_undefined_between_a_version_and_a_string_but_not_the_other_way_round():
    version = versions.parse("1.2.3")
    assert equals(version, "1.2.3") is None
    assert equals("1.2.3", version) is False
    assert equals([version], ["1.2.3"]) is True


def test_null_equals_only_null():
    assert equals(None, None) is True
    assert equals(None, 0) is False
    assert equals(Quantity(quantity.parse("1")), None) is False


def test_optionals_are_equal_by_what_they_hold():
    assert equals(Optional(1), Optional(1.0)) is True
    assert equals(Optional(1), NONE) is False
    assert equals(NONE, Optional(None)) is False


def test_integers_have_64_bits():
    assert int64(2**63 - 1) == 2**63 - 1
    assert type(uint64(2**64 - 1)) is UInt
    for convert, number in ((int64, 2**63), (int64, -(2**63) - 1), (uint64, -1), (uint64, 2**64)):
        with pytest.raises(EvaluationError, match="overflow"):
            convert(number)
