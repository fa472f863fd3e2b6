from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from podium.lib.heap import KeyedHeap


@dataclass
class Item:
    name: str
    rank: int


def by_rank(*items: Item) -> KeyedHeap[Item]:
    heap: KeyedHeap[Item] = KeyedHeap(lambda item: item.name, lambda item: item.rank)
    for entry in items:
        heap.push(entry)
    return heap


def pop_names(heap: KeyedHeap[Item]) -> list[str]:
    names = []
    while (item := heap.pop()) is not None:
        names.append(item.name)
    return names


def test_the_smallest_comes_first_and_equals_in_the_order_they_came() -> None:
    assert pop_names(by_rank(Item("c", 2), Item("b", 1), Item("a", 2), Item("d", 0))) == ["d", "b", "c", "a"]


def test_peeking_takes_nothing_out() -> None:
    heap = by_rank(Item("a", 1))
    assert heap.peek() is heap.peek() is heap.get("a")
    assert len(heap) == 1


def test_an_empty_heap_has_nothing() -> None:
    heap = by_rank()
    assert (heap.peek(), heap.pop(), heap.get("a"), heap.remove("a"), len(heap)) == (None, None, None, None, 0)


def test_a_pushed_item_replaces_the_one_with_its_key() -> None:
    heap = by_rank(Item("a", 1), Item("b", 2))
    heap.push(Item("a", 3))
    assert len(heap) == 2
    assert pop_names(heap) == ["b", "a"]


def test_a_replaced_item_goes_behind_its_equals() -> None:
    heap = by_rank(Item("a", 1), Item("b", 1))
    heap.push(Item("a", 1))
    assert pop_names(heap) == ["b", "a"]


def test_a_removed_item_is_gone() -> None:
    first = Item("a", 1)
    heap = by_rank(first, Item("b", 2))
    assert heap.remove("a") is first
    assert "a" not in heap
    assert "b" in heap
    assert [item.name for item in heap] == ["b"]
    assert pop_names(heap) == ["b"]


@given(st.lists(st.tuples(st.sampled_from(["push", "pop", "remove"]), st.integers(0, 9), st.integers(0, 5))))
def test_it_agrees_with_sorting(steps: list[tuple[str, int, int]]) -> None:
    heap = by_rank()
    model: dict[str, tuple[int, int]] = {}
    for number, (step, name, rank) in enumerate(steps):
        key = str(name)
        if step == "push":
            heap.push(Item(key, rank))
            model[key] = (rank, number)
        elif step == "remove":
            assert (heap.remove(key) is not None) is (model.pop(key, None) is not None)
        else:
            expected_name = min(model, key=model.__getitem__, default=None)
            item = heap.pop()
            assert (item.name if item else None) == expected_name
            model.pop(expected_name or "", None)
        assert len(heap) == len(model)
    assert pop_names(heap) == sorted(model, key=model.__getitem__)


def test_what_is_replaced_again_and_again_does_not_pile_up() -> None:
    class Rank(float):
        """A sort key that can be watched."""

    remembered: weakref.WeakSet[Rank] = weakref.WeakSet()

    def rank(item: Item) -> Rank:
        item_rank = Rank(item.rank)
        remembered.add(item_rank)
        return item_rank

    heap: KeyedHeap[Item] = KeyedHeap(lambda item: item.name, rank)
    for number in range(1000):
        heap.push(Item("a", number))
        heap.push(Item("b", -number))
    gc.collect()
    assert len(remembered) <= 65
    assert pop_names(heap) == ["b", "a"]
