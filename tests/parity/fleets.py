"""`python -m tests.parity.fleets --seed N --count M`: does the whole workload fit where podium says, and nowhere else?

Each fleet is of several clusters that are crossed by chance from recorded scenarios, with a workload of several pods,
and sometimes with pods that wait already. podium names the clusters that take the whole workload, and kube-scheduler's
own packages are asked to place the same queue of pods in each cluster. Exits with 1 if they do not place every pod in a
cluster that is named, or do so in another one.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random

import click
import orjson

from podium.engine.cluster import Cluster
from podium.engine.configurations import Configurations
from podium.engine.manifests import read_manifest
from podium.engine.recorded_questions import RecordedQuestion
from podium.fleets.answers import FleetFit
from podium.fleets.search import FleetQuestion, Member, ask_all
from podium.fleets.workload import Workload
from podium.objects.resource_types import PODS
from podium.plugins import IN_TREE
from tests.control_plane import builder
from tests.control_plane.progress import Progress
from tests.parity.cross import recorder
from tests.parity.cross.comparison import Keeping, recorded_questions
from tests.parity.cross.drawing import Json, ask_as, chance, copy_of
from tests.parity.cross.scenarios import crossed_scenarios
from tests.parity.recorded import SCENARIOS

SHOWN = 20
WITHOUT_END = 1_000_000
CLUSTERS_MAX, PODS_MAX, WAITING_MAX = 4, 8, 3


@dataclass(slots=True)
class Outcome:
    """Of all fleets."""

    fleet_count: int = 0
    fitting_count: int = 0
    cluster_count: int = 0
    pod_count: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RandomFleet:
    """A fleet, its workload, and podium's answer; and each cluster as a question to kube-scheduler's code."""

    name: str
    answer: FleetFit
    questions: dict[str, Json]


def random_fleets(recordings: Sequence[Json], seed: int, count: int) -> Iterator[RandomFleet]:
    """As many fleets."""
    configurations = Configurations(IN_TREE)
    scenarios = crossed_scenarios(recordings, seed, WITHOUT_END)
    for number in range(count):
        random = chance(seed, number)
        batch = list(islice(scenarios, random.randint(2, CLUSTERS_MAX)))
        yield _fleet(f"fleet-{seed}x{number}", random, batch, configurations)


def _fleet(name: str, random: Random, scenarios: Sequence[Json], configurations: Configurations) -> RandomFleet:
    config = scenarios[0]["config"]
    workload = Workload(name, _pods(random, scenarios, config))
    waiting = _waiting(random, scenarios, config)
    typed_waiting = [read_manifest(pod, PODS) for pod in waiting]
    members, questions = [], {}
    for number, scenario in enumerate(scenarios):
        cluster = Cluster(configurations.of(config), RecordedQuestion(objects=scenario["objects"]).store(), IN_TREE)
        member = Member(f"{name}-{number}", cluster, typed_waiting, number)
        members.append(member)
        questions[member.name] = {
            "id": member.name,
            "objects": scenario["objects"],
            "pods": [*waiting, *workload.pods],
            "config": config,
        }
    return RandomFleet(name, ask_all(FleetQuestion(workload), members, {}), questions)


def _pods(random: Random, scenarios: Sequence[Json], config: Json | None) -> list[Json]:
    """The pods of a workload with one or two templates, as an API server has admitted them."""
    pods: list[Json] = []
    for template in random.sample(range(len(scenarios)), random.randint(1, 2)):
        pod = ask_as(copy_of(scenarios[template]["pod"]), config)
        spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
        for _ in range(random.randint(1, PODS_MAX // 2)):
            identity = f"workload-{len(pods)}"
            metadata = {**pod["metadata"], "name": identity, "uid": identity}
            pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return pods


def _waiting(random: Random, scenarios: Sequence[Json], config: Json | None) -> list[Json]:
    """Pods that wait in every cluster; mostly there are none."""
    pods = []
    for number in range(random.randint(0, WAITING_MAX) if random.random() < 0.3 else 0):
        pod = ask_as(copy_of(random.choice(scenarios)["pod"]), config, f"waiting-{number}", f"waiting-{number}")
        spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
        pods.append({"metadata": pod["metadata"], "spec": spec})
    return pods


def check_fleets(fleets: Iterable[RandomFleet], binary: Path, directory: Path, keeping: Keeping) -> Outcome:
    """Ask kube-scheduler's code to place each queue."""
    outcome, path, fleet_list = Outcome(), directory / "fleets.jsonl", list[RandomFleet]()
    with path.open("wb") as lines:
        for fleet in fleets:
            fleet_list.append(fleet)
            lines.writelines(orjson.dumps(question) + b"\n" for question in fleet.questions.values())
    answers = recorder.answers(binary, path)
    for fleet in fleet_list:
        verdicts = {name: _are_placed(next(answers)) for name in fleet.questions}
        outcome.fleet_count += 1
        outcome.fitting_count += bool(fleet.answer)
        outcome.cluster_count += len(verdicts)
        outcome.pod_count += len(verdicts) * fleet.answer.pods
        fits = {cluster.cluster for cluster in fleet.answer.fits}
        for name, is_placed in verdicts.items():
            if is_placed != (name in fits):
                file = keeping.keep(f"{name}.jsonl", orjson.dumps(fleet.questions[name]) + b"\n")
                verdict = "takes" if name in fits else "does not take"
                outcome.wrong.append(f"{name}: podium says that it {verdict} {fleet.answer.pods} pods: {file}")
    assert next(answers, None) is None
    return outcome


def _are_placed(answer: Json) -> bool:
    """Return whether every pod of the workload has a node."""
    placements = answer.get("placements") or ()
    nodes = [bool(item.get("node")) for item in placements if "/workload-" in item["pod"]]
    return bool(nodes) and all(nodes)


@click.command(help=__doc__)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--count", type=int, default=1000, show_default=True, help="Fleets.")
@click.option("--keep", type=click.Path(path_type=Path), default=Path("build/fleets"), show_default=True)
def main(seed: int, count: int, keep: Path) -> None:
    try:
        binary = recorder.obtain(Progress())
    except builder.BuildError as problem:
        raise click.ClickException(str(problem)) from problem
    with tempfile.TemporaryDirectory(prefix="podium-fleets-") as directory:
        fleets = random_fleets(recorded_questions(SCENARIOS), seed, count)
        outcome = check_fleets(fleets, binary, Path(directory), Keeping(keep))
    click.echo(
        f"{outcome.fleet_count} fleets of {outcome.cluster_count} clusters, {outcome.pod_count} pods; "
        f"{outcome.fitting_count} with a cluster that takes the workload; {len(outcome.wrong)} wrong"
    )
    for line in outcome.wrong[:SHOWN]:
        click.echo(f"  {line}")
    sys.exit(int(bool(outcome.wrong)))


if __name__ == "__main__":
    main()
