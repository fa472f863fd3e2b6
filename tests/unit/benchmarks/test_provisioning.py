import io
from collections import Counter
from dataclasses import replace

from rich.console import Console

from benchmarks.provisioning import QUESTIONS, Question, checks, diverse_pods, instance_types, measure, table


def test_a_small_plan_is_measured() -> None:
    planned = measure(Question("diverse", 10, pools=2, nodes=1))
    assert (planned.errors, planned.on_nodes > 0, planned.claims > 0, planned.cpu_s > 0) == (0, True, True, True)
    output = io.StringIO()
    Console(file=output, width=120).print(table([planned]))
    assert "nodes to buy" in output.getvalue()


def test_the_pods_are_of_five_kinds_in_equal_parts() -> None:
    specs = [each["spec"] for each in diverse_pods(50)]
    kinds = Counter("".join(sorted(each.keys() - {"containers"})) for each in specs)
    assert kinds == {"": 10, "topologySpreadConstraints": 20, "affinity": 20}


def test_each_instance_type_is_larger_than_the_one_before() -> None:
    first, second = instance_types(2).instance_types
    assert first.capacity == {"cpu": 1000, "memory": 2 * 2**30, "pods": 10}
    assert second.capacity == {name: 2 * amount for name, amount in first.capacity.items()}
    assert len(first.offerings) == 5


def test_plans_are_held_against_what_is_promised() -> None:
    planned = measure(Question("diverse", 5))
    plans = {(each.name, each.pods): replace(planned, cpu_s=each.cpu_s_max - 0.1) for each in QUESTIONS}
    assert all(each.is_met for each in checks(plans))
    plans["diverse", 2_000] = replace(planned, cpu_s=1.8)
    assert [each.is_met for each in checks(plans)] == [False, True, True, True, True, True]
    plans["diverse", 2_000] = replace(planned, cpu_s=0.1)
    assert [each.is_met for each in checks(plans)] == [True, True, True, True, True, False]
