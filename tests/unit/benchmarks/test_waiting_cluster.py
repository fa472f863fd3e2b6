import json
from collections import Counter
from pathlib import Path

from benchmarks.waiting_cluster import diverse_pods, instance_types, write_case
from podium.provisioner.cloudprovider.catalogue import read_catalogue
from podium.provisioner.reports.cases import Cases


def test_the_pods_are_of_five_kinds_in_equal_parts() -> None:
    specs = [diverse_pod["spec"] for diverse_pod in diverse_pods(50)]
    kinds = Counter("".join(sorted(spec.keys() - {"containers"})) for spec in specs)
    assert kinds == {"": 10, "topologySpreadConstraints": 20, "affinity": 20}


def test_each_instance_type_is_larger_than_the_one_before() -> None:
    first, second = read_catalogue(instance_types(2)).instance_types
    assert first.capacity == {"cpu": 1000, "memory": 2 * 2**30, "pods": 10}
    assert second.capacity == {name: 2 * amount for name, amount in first.capacity.items()}
    assert len(first.offerings) == 5


def test_the_file_is_one_that_podium_plan_answers(tmp_path: Path) -> None:
    write_case(tmp_path / "case", pods=10, pools=2, nodes=1, node_cpu=16)
    cases = Cases()
    nothing, answer = (cases.answer(json.loads(line)) for line in (tmp_path / "case").read_text().splitlines())
    assert nothing is None
    assert answer is not None
    assert answer["existing"].keys() == {"node-0000"}
    assert answer["claims"]
    assert not answer["errors"]
