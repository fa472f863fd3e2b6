import pytest

from podium.lib.go_sort import go_sorted

# (length, distinct keys, step): a hash of the order that Go's sort.Sort leaves the items in.
ORDERS = [
    (12, 2, 3, 0xBCE3251B),
    (12, 2, 7, 0xBCE3251B),
    (12, 5, 3, 0x7C9C2445),
    (12, 17, 3, 0x19CAA225),
    (13, 2, 3, 0xD9DC5306),
    (13, 2, 7, 0xD9DC5306),
    (13, 5, 3, 0x2BA15AF2),
    (13, 17, 3, 0xB0E46B12),
    (50, 2, 3, 0xFF0F02B4),
    (50, 2, 7, 0xFF0F02B4),
    (50, 5, 3, 0x37681B46),
    (50, 17, 3, 0xA19DA03C),
    (51, 2, 3, 0x289D3B13),
    (51, 2, 7, 0x289D3B13),
    (51, 5, 3, 0xD2E70AA7),
    (51, 17, 3, 0xE6B5FD41),
    (200, 2, 3, 0xEDA0659B),
    (200, 2, 7, 0xEDA0659B),
    (200, 5, 3, 0x5EEFC0A5),
    (200, 17, 3, 0x5D6C2CED),
    (1000, 2, 3, 0x2E51FDBF),
    (1000, 2, 7, 0x2E51FDBF),
    (1000, 5, 3, 0x7BCCFEAB),
    (1000, 17, 3, 0xFE7A9BF5),
]


def _fnv1a(text):
    number = 2166136261
    for byte in text.encode():
        number = (number ^ byte) * 16777619 & 0xFFFFFFFF
    return number


@pytest.mark.parametrize(("length", "keys", "step", "hash_of_order"), ORDERS)
def test_equal_items_are_in_the_order_of_go(length, keys, step, hash_of_order):
    order = go_sorted(range(length), lambda item: (item * step + item // 5) % keys)
    assert _fnv1a("".join(f"{item}," for item in order)) == hash_of_order


@pytest.mark.parametrize("length", [0, 1, 12, 13, 60, 500])
def test_items_are_sorted_whatever_order_they_come_in(length):
    for items in (list(range(length)), list(range(length))[::-1], [item * 7919 % 101 for item in range(length)]):
        assert go_sorted(items, lambda item: item) == sorted(items)


def test_many_bad_partitions_end_in_a_sort_by_heap():
    items = [(item * item) % 37 for item in range(300)]
    from podium.lib.go_sort import _Sort

    sort = _Sort([(item, item) for item in items])
    sort.run(0, len(items), 0)
    assert [item for _, item in sort.pairs] == sorted(items)
