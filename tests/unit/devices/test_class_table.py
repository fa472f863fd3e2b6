import msgspec

from podium.devices.class_table import IMPLICIT_PREFIX, ClassTable
from podium.objects.devices import DeviceClass

GPU = "example.com/gpu"


def a_class(name, day=1, resource=GPU):
    metadata = {"name": name, "creationTimestamp": f"2026-01-{day:02}T00:00:00Z"}
    return msgspec.convert({"metadata": metadata, "spec": {"extendedResourceName": resource}}, DeviceClass)


def table(*classes):
    classes_table = ClassTable()
    for device_class in classes:
        classes_table.add(device_class)
    return classes_table


def test_class_provides_its_resource_and_an_implicit_one():
    gpu = a_class("gpu")
    assert table(gpu).get(GPU) is table(gpu).get(f"{IMPLICIT_PREFIX}gpu") is gpu
    plain = a_class("plain", resource=None)
    assert table(plain).get(f"{IMPLICIT_PREFIX}plain") is plain
    assert table(plain).get(GPU) is None


def test_newest_class_counts_then_the_first_by_name():
    old, new, twin = a_class("a", 1), a_class("c", 2), a_class("b", 2)
    assert table(old, new).get(GPU) is table(new, old).get(GPU) is new
    assert table(new, twin).get(GPU) is table(twin, new).get(GPU) is twin


def test_class_that_loses_when_it_is_added_provides_nothing():
    loser = a_class("a", 1)
    assert table(a_class("b", 2), loser).get(f"{IMPLICIT_PREFIX}a") is None
    assert table(loser, a_class("b", 2)).get(f"{IMPLICIT_PREFIX}a") is loser


def test_update_counts_only_if_the_class_names_another_resource():
    old, second = a_class("gpu"), a_class("gpu", resource="example.com/other")
    classes_table = table(old)
    classes_table.add(a_class("gpu"), old)
    assert classes_table.get(GPU) is old
    classes_table.add(second, old)
    assert (classes_table.get(GPU), classes_table.get("example.com/other")) == (None, second)


def test_class_that_goes_takes_its_resource_along_even_from_another_class():
    old, new = a_class("a", 1), a_class("b", 2)
    classes_table = table(old, new)
    classes_table.remove(old)
    assert classes_table.get(GPU) is None
    assert classes_table.get(f"{IMPLICIT_PREFIX}b") is new
