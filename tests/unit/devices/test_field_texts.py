from collections import Counter

import pytest

from podium.devices.answers import Looks
from podium.devices.field_texts import amount_text, counts_text, field_text
from podium.devices.inventory import InventorySlice
from tests.unit.devices.cluster import DRIVER, a_slice

ATTRIBUTES = {
    "model": {"string": "a100"},
    "index": {"int": 3},
    "healthy": {"bool": True},
    "models": {"strings": ["a", "b"]},
    "flags": {"bools": [True, False]},
    "numbers": {"ints": []},
    "odd": {},
}
GPU = {"name": "g0", "attributes": ATTRIBUTES, "capacity": {"memory": {"value": "1024Mi"}}}


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("driver", "", DRIVER),
        ("attributes", "model", "a100"),
        ("attributes", "index", "3"),
        ("attributes", "healthy", "true"),
        ("attributes", "models", "[a, b]"),
        ("attributes", "flags", "[true, false]"),
        ("attributes", "numbers", "[]"),
        ("attributes", "odd", "none"),
        ("attributes", "missing", "none"),
        ("capacity", "memory", "1Gi"),
        ("capacity", "missing", "none"),
    ],
)
def test_a_field_has_a_text(kind: str, name: str, text: str) -> None:
    (device,) = InventorySlice(a_slice("s", GPU), Looks()).devices
    full_name = f"{DRIVER}/{name}" if name else ""
    assert field_text(device, kind, full_name) == text


def test_the_most_frequent_values_come_first() -> None:
    assert counts_text(Counter("abacabd")) == "a on 3, b on 2, c on 1 and 1 more"
    assert counts_text(Counter("a")) == "a on 1"


def test_amounts_have_the_largest_unit_that_divides_them() -> None:
    texts = [amount_text(nano) for nano in (0, 5 * 10**8, 3 * 10**9, 2**30 * 10**9, 3 * 2**20 * 10**9)]
    assert texts == ["0", "0.5", "3", "1Gi", "3Mi"]
