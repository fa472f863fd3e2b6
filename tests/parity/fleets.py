"""`python -m tests.parity.fleets --seed N --count M`: does the whole workload fit where podium says, and nowhere else?

Each fleet is of several clusters that are crossed by chance from recorded scenarios, with a workload of several pods,
and sometimes with pods that wait already. Of some workloads the pods are a gang that must lie in one topology domain,
and of others each pod has claims to devices from templates, for which kube-scheduler's code gets the claims. podium
names the clusters that take the whole workload, and kube-scheduler's own packages are asked to place the same queue of
pods in each cluster. Exits with 1 if they do not place every pod in a cluster that is named, or do so in another one.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

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
from tests.parity.cross.devices import about_one_pod
from tests.parity.cross.drawing import Json, ask_as, chance, copy_of, of_kind
from tests.parity.cross.scenarios import crossed_scenarios
from tests.parity.recorded import DEVICES, SCENARIOS

SHOWN = 20
WITHOUT_END = 1_000_000
CLUSTERS_MAX, PODS_MAX, WAITING_MAX = 4, 8, 3
_CLAIMING, _GROUPED = 0.3, 0.3
_GROUP = "workload-group"
_GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
_TOPOLOGY_KEYS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname")


@dataclass(slots=True)
class Outcome:
    """Of all fleets."""

    fleet_count: int = 0
    fitting_count: int = 0
    cluster_count: int = 0
    pod_count: int = 0
    wrong: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RandomFleet:
    """A fleet, its workload, and podium's answer; and each cluster as a question to kube-scheduler's code."""

    name: str
    answer: FleetFit
    questions: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Submission:
    """A workload as podium is asked about it, and what kube-scheduler's code gets instead.

    Attributes:
        objects: what comes with the pods.
        templates: of claims, by name.
        claims: what controllers would make of the templates.
        claiming_pods: the pods with those claims.
    """

    pods: list[Json]
    objects: tuple[Json, ...] = ()
    templates: tuple[Json, ...] = ()
    claims: tuple[Json, ...] = ()
    claiming_pods: list[Json] | None = None


def random_fleets(
    recordings: Sequence[Json], seed: int, count: int, device_recordings: Sequence[Json] = ()
) -> Iterator[RandomFleet]:
    """As many fleets, with device questions a third of them with claims."""
    configurations = Configurations(IN_TREE)
    scenarios = crossed_scenarios(recordings, seed, WITHOUT_END)
    free_recordings = [question for question in about_one_pod(device_recordings) if _has_free_claims(question)]
    for number in range(count):
        random = chance(seed, number)
        if free_recordings and random.random() < _CLAIMING:
            yield _claiming_fleet(f"fleet-{seed}x{number}", random, free_recordings, configurations)
            continue
        batch = list(islice(scenarios, random.randint(2, CLUSTERS_MAX)))
        yield _fleet(f"fleet-{seed}x{number}", random, batch, configurations)


def _fleet(name: str, random: Random, scenarios: Sequence[Json], configurations: Configurations) -> RandomFleet:
    config = scenarios[0]["config"]
    submission = _perhaps_a_gang(random, _pods(random, scenarios, config), scenarios)
    workload = Workload(name, submission.pods, submission.objects)
    waiting = _waiting(random, scenarios, config)
    if submission.objects:
        waiting = [pod for pod in waiting if not _need_a_volume_controller(pod, scenarios)]
    typed_waiting = [read_manifest(pod, PODS) for pod in waiting]
    members, questions = [], {}
    for number, scenario in enumerate(scenarios):
        cluster = Cluster(configurations.of(config), RecordedQuestion(objects=scenario["objects"]).store(), IN_TREE)
        member = Member(f"{name}-{number}", cluster, typed_waiting, number)
        members.append(member)
        questions[member.name] = _question(member.name, scenario["objects"], waiting, submission, config)
    return RandomFleet(name, ask_all(FleetQuestion(workload), members, {}), questions)


def _question(name: str, objects: Sequence[Json], waiting: Sequence[Json], submission: Submission, config: Any) -> Json:
    """Return one cluster as a question to kube-scheduler's code."""
    question = {
        "id": name,
        "objects": [*objects, *submission.objects, *submission.claims],
        "pods": [*waiting, *(submission.claiming_pods or submission.pods)],
        "config": config,
    }
    return {**question, "gates": _GATES} if submission.objects else question


def _perhaps_a_gang(random: Random, pods: list[Json], scenarios: Sequence[Json]) -> Submission:
    """Make the pods of one template a gang now and then, which mostly must lie in one domain."""
    if random.random() >= _GROUPED or _need_a_volume_controller(pods[0], scenarios):
        return Submission(pods)
    pods = [pod for pod in pods if pod["spec"] is pods[0]["spec"]]
    namespace = pods[0]["metadata"].get("namespace", "default")
    spec: Json = {"schedulingPolicy": {"gang": {"minCount": len(pods)}}}
    if random.random() < 0.8:
        spec["schedulingConstraints"] = {"topology": [{"key": random.choice(_TOPOLOGY_KEYS)}]}
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": _GROUP, "namespace": namespace, "uid": _GROUP},
        "spec": spec,
    }
    pods[0]["spec"]["schedulingGroup"] = {"podGroupName": _GROUP}
    return Submission(pods, (group,))


def _need_a_volume_controller(pod: Json, scenarios: Sequence[Json]) -> bool:
    """Return whether the pod has a claim to storage that is not bound in some cluster.

    In a queue with a gang, kube-scheduler's code binds pods before it answers, and would wait for a controller to bind
    the claim.
    """
    uses = (volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes", ()))
    names = {use["claimName"] for use in uses if use is not None}
    claims = (claim for scenario in scenarios for claim in of_kind(scenario["objects"], "PersistentVolumeClaim"))
    return any(claim["metadata"]["name"] in names and not claim["spec"].get("volumeName") for claim in claims)


def _has_free_claims(question: Json) -> bool:
    """Return whether the pod has claims of its own that no device is allocated to yet, and nothing else to share."""
    claims = of_kind(question["objects"], "ResourceClaim")
    names = {claim.get("resourceClaimName") for claim in question["pod"]["spec"].get("resourceClaims", ())}
    unallocated_names = {claim["metadata"]["name"] for claim in claims if not claim.get("status")}
    # While a pool is updated, upstream's attempt at all of its devices fails, and podium's does not: see `Differs` in
    # podium.plugins.dynamic_resources.plugin.
    asks_for_all = any(b'"All"' in orjson.dumps(claim["spec"]) for claim in claims)
    return bool(names) and names <= unallocated_names and not asks_for_all


def _claiming_fleet(
    name: str, random: Random, recordings: Sequence[Json], configurations: Configurations
) -> RandomFleet:
    """A fleet with devices, and pods that each have claims from templates."""
    batch = random.sample(recordings, random.randint(2, CLUSTERS_MAX))
    config = batch[0].get("config")
    submission = _with_claims(copy_of(batch[0]), random.randint(1, PODS_MAX // 2), config)
    workload = Workload(name, submission.pods, control_objects=submission.templates)
    members, questions = [], {}
    for number, recording in enumerate(batch):
        claim_names = {claim["metadata"]["name"] for claim in submission.claims}
        objects = [item for item in copy_of(recording["objects"]) if item["metadata"]["name"] not in claim_names]
        cluster = Cluster(configurations.of(config), RecordedQuestion(objects=objects).store(), IN_TREE)
        member = Member(f"{name}-{number}", cluster, [], number)
        members.append(member)
        questions[member.name] = _question(member.name, objects, [], submission, config)
    return RandomFleet(name, ask_all(FleetQuestion(workload), members, {}), questions)


def _with_claims(question: Json, count: int, config: Json | None) -> Submission:
    """Return as many pods as the question's, each with claims like those of its pod."""
    specs = {claim["metadata"]["name"]: claim["spec"] for claim in of_kind(question["objects"], "ResourceClaim")}
    pod = ask_as(question["pod"], config)
    spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
    claim_uses = spec["resourceClaims"]
    namespace = pod["metadata"].get("namespace", "default")
    head = {"apiVersion": "resource.k8s.io/v1"}
    templates = tuple(
        {
            **head,
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": namespace, "uid": f"template-{name}"},
            "spec": {"spec": specs[name]},
        }
        for name in sorted({use["resourceClaimName"] for use in claim_uses})
    )
    by_template = [{"name": use["name"], "resourceClaimTemplateName": use["resourceClaimName"]} for use in claim_uses]
    template_spec = {**spec, "resourceClaims": by_template}
    pods, claiming_pods, claims = [], [], []
    for number in range(count):
        identity = f"workload-{number}"
        metadata = {**pod["metadata"], "name": identity, "uid": identity}
        pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template_spec})
        by_name = [{"name": use["name"], "resourceClaimName": f"{identity}-{use['name']}"} for use in claim_uses]
        claiming_pods.append({**pods[-1], "spec": {**spec, "resourceClaims": by_name}})
        claims += [
            {
                **head,
                "kind": "ResourceClaim",
                "metadata": {
                    "name": claim["resourceClaimName"],
                    "namespace": namespace,
                    "uid": claim["resourceClaimName"],
                },
                "spec": specs[use["resourceClaimName"]],
            }
            for use, claim in zip(claim_uses, by_name, strict=True)
        ]
    return Submission(pods, (), templates, tuple(claims), claiming_pods)


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
        verdicts = {name: _are_placed(next(answers), outcome.unanswered) for name in fleet.questions}
        outcome.fleet_count += 1
        outcome.fitting_count += bool(fleet.answer)
        outcome.cluster_count += len(verdicts)
        outcome.pod_count += len(verdicts) * fleet.answer.pods
        fits = {cluster.cluster for cluster in fleet.answer.fits}
        for name, is_placed in verdicts.items():
            if is_placed is not None and is_placed != (name in fits):
                file = keeping.keep(f"{name}.jsonl", orjson.dumps(fleet.questions[name]) + b"\n")
                verdict = "takes" if name in fits else "does not take"
                outcome.wrong.append(f"{name}: podium says that it {verdict} {fleet.answer.pods} pods: {file}")
    assert next(answers, None) is None
    return outcome


def _are_placed(answer: Json, unanswered: list[str]) -> bool | None:
    """Return whether every pod of the workload has a node; None, with a note why, if there is no answer."""
    if "failed" in answer:
        unanswered.append(f"{answer['id']}: kube-scheduler's code gave no answer: {answer['failed']}")
        return None
    # Queues with groups are answered by attempts, of which the latest counts.
    attempts = [item for attempt in answer.get("attempts") or () for item in attempt["pods"]]
    placements = {item["pod"]: item for item in [*(answer.get("placements") or ()), *attempts]}.values()
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
        fleets = random_fleets(recorded_questions(SCENARIOS), seed, count, recorded_questions(DEVICES))
        outcome = check_fleets(fleets, binary, Path(directory), Keeping(keep))
    click.echo(
        f"{outcome.fleet_count} fleets of {outcome.cluster_count} clusters, {outcome.pod_count} pods; "
        f"{outcome.fitting_count} with a cluster that takes the workload; {len(outcome.wrong)} wrong, "
        f"{len(outcome.unanswered)} unanswered"
    )
    for line in [*outcome.wrong, *outcome.unanswered][:SHOWN]:
        click.echo(f"  {line}")
    sys.exit(int(bool(outcome.wrong or outcome.unanswered)))


if __name__ == "__main__":
    main()
