"""What `podium make-room` and `podium what-if --order` print."""

import json
from functools import partial

import pytest

from tests.manifests import node
from tests.unit.cli.commands import run, write_objects
from tests.unit.insight.room.test_make_room import running, waiting

_run = partial(run, "make-room")


@pytest.fixture
def cluster(tmp_path):
    objects = (
        node("n1", "4"),
        node("n2", "3"),
        node("n3", "1"),
        running("web-1", "3", "n1"),
        running("api-1", "1", "n2"),
    )
    return write_objects(tmp_path / "cluster.yaml", *objects, waiting())


def test_the_steps_are_described_in_words(cluster):
    result = _run("-f", cluster, "--for", "default/big")
    assert result.exit_code == 0, result.output
    assert [line.strip() for line in result.stdout.splitlines()] == [
        "default/big fits after 2 moves (proven: no fewer do; 3 nodes, 2 movable pods)",
        "1. move default/api-1 (ReplicaSet/api): n2 → n3",
        "cordon n2, n1 before it",
        "uncordon n1 after it",
        "2. move default/web-1 (ReplicaSet/web): n1 → n2",
        "cordon n1 before it",
        "nominate the replacement to n2, then uncordon that",
        "3. default/big → n1",
        "nominate, then uncordon n1",
        "cost: 128Mi requested by the moved pods, priorities 0, 2 containers restarted",
    ]


def test_the_answer_for_programs(cluster):
    answer = json.loads(_run("-f", cluster, "--for", "default/big", "-o", "json").stdout)
    assert [step["evict"] for step in answer["steps"]] == ["default/api-1", "default/web-1"]
    assert answer["proven"] is True


def test_pods_that_stay_are_named_and_the_exit_status_says_that_nothing_helps(tmp_path):
    objects = node("n1", "4"), node("n2", "1"), running("agent-1", "1", "n1", "DaemonSet"), waiting()
    file = write_objects(tmp_path / "c.yaml", *objects)
    result = _run("-f", file, "--for", "default/big", "--exit-code")
    assert result.exit_code == 3
    assert "default/agent-1 on n1: it belongs to its node" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--carry-out"], "--carry-out moves pods of a running cluster"),
        (["--dry-run"], "--dry-run goes with --carry-out"),
    ],
)
def test_options_that_make_no_sense_are_refused(cluster, arguments, message):
    result = _run("-f", cluster, "--for", "default/big", *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_an_order_of_drains(cluster):
    result = run("what-if", "-f", cluster, "--drain", "n3,n2", "--order")
    assert result.exit_code == 0, result.output
    assert "cordon all of these nodes first, then drain them in this order:" in result.stdout
    answer = json.loads(run("what-if", "-f", cluster, "--drain", "n3,n2", "--order", "-o", "json").stdout)
    assert [batch["nodes"] for batch in answer["batches"]] == [["n3", "n2"]]
    assert answer["batches"][0]["moves"] == [{"pod": "default/api-1", "from": "n2", "to": "n1"}]


def test_an_order_is_about_drains_alone(cluster):
    result = run("what-if", "-f", cluster, "--drain", "n3", "--remove", "Node/n2", "--order")
    assert result.exit_code == 2
    assert "--order needs --drain, and no other step" in result.output
