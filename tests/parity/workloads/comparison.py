"""podium's answers to questions about workloads, beside those of a real control plane.

A question is a cluster (`objects`), a `step`, and what came of it (`expect`). podium decides by the rules of the
control plane's `minor`; the oldest questions, which lack it, are of the first minor that podium knows. Compared are the
nodes of each workload's pods and whose pods were preempted where; the nodes of the pods whose names are certain; and
the messages of new pods that are pending. Where the API server refused everything, podium has to refuse it for the same
reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from podium.cli.main import main
from podium.config import FIRST
from tests.parity.workloads.naming import Json, Naming, key_of

PENDING = "pending"
_REFUSED = " is (?:forbidden|invalid): "


@dataclass(frozen=True, slots=True)
class Answer:
    """The output of a command of podium."""

    exit_code: int
    output: str
    error: str


def objects_known(question: Json) -> list[Json]:
    """The objects of the cluster and those that are applied to it."""
    return [*question["objects"], *question["step"].get("apply", ())]


def arguments(question: Json, directory: Path) -> list[str]:
    """The command line that asks podium, with the files that it names written to the directory."""
    cluster = _list_file(directory / "cluster.json", question["objects"])
    ((action, value),) = question["step"].items()
    if action == "apply":
        step = ["--apply", _list_file(directory / "applied.json", value)]
    elif action == "scale":
        step = ["--scale", f"{value['namespace']}/{value['kind']}/{value['name']}={value['replicas']}"]
    elif action == "drain":
        step = ["--drain", value]
    elif action == "delete":
        step = ["--remove", f"{value['kind']}/{value['namespace']}/{value['name']}"]
    else:
        assert action == "deleteNode", action
        step = ["--remove", f"Node/{value}"]
    return ["what-if", "-f", cluster, *step, "--decide-as", question.get("minor", FIRST.minor), "-o", "json"]


def _list_file(path: Path, items: list[Json]) -> str:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return str(path)


def ask_podium(question: Json, directory: Path) -> Answer:
    """podium's answer, given in this process."""
    result = CliRunner().invoke(main, arguments(question, directory))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return Answer(result.exit_code, "", repr(result.exception))
    return Answer(result.exit_code, result.stdout, result.stderr)


def differences(question: Json, answer: Answer) -> list[str]:
    """Where podium's answer is not the recorded one; empty if it agrees as a whole."""
    expect = question["expect"]
    if answer.exit_code:
        reasons = _reasons_of_refusal(expect)
        is_expected = reasons and all(reason in answer.error for reason in reasons)
        return [] if is_expected else [f"podium refuses: {answer.error.strip()[-300:]}"]
    outcome = Predicted(question, json.loads(answer.output))
    return [
        *outcome.other_nodes(expect),
        *outcome.other_names(expect),
        *outcome.other_messages(expect),
        *outcome.other_refusals(expect),
    ]


def _reasons_of_refusal(expect: Json) -> list[str]:
    """Why the API server refused the pods, if it let none of them in."""
    if any(workload.get("new") for workload in expect["workloads"].values()):
        return []
    return [_reason_in(refusal["message"]) for refusal in expect["refused"]]


def _reason_in(message: str) -> str:
    """Return the text after the name of the object."""
    return re.split(_REFUSED, message, maxsplit=1)[-1]


class Predicted:
    """The cluster that podium predicts."""

    def __init__(self, question: Json, answer: Json) -> None:
        self._naming = naming = Naming(objects_known(question))
        pods = [item for item in question["objects"] if item["kind"] == "Pod"]
        node_by_pod = {key_of(pod): pod["spec"].get("nodeName", "") for pod in pods}
        self.node_of = dict(node_by_pod)
        for key in answer["gone"]:
            self.node_of.pop(key, None)
        for move in (*answer["moved"], *answer["placed"]):
            self.node_of[move["pod"]] = move["to"]
        self.messages: dict[str, list[str]] = {}
        for pending in answer["pending"]:
            key = pending["pod"]
            self.node_of[key] = ""
            text = naming.plain_message(pending["why"])
            self.messages.setdefault(naming.workload_named(key), []).append(text)
        self.blocked = Counter(naming.workload_named(entry["pod"]) for entry in answer["blocked"])
        self.refused = {
            naming.top_of(*refusal["workload"].split("/")): _reason_in(naming.plain_message(refusal["reason"]))
            for refusal in answer["refused"]
        }
        self.nodes: dict[str, Counter[str]] = {}
        for key, node in self.node_of.items():
            self.nodes.setdefault(naming.workload_named(key), Counter())[node] += 1
        self.preempted = Counter(
            f"{naming.workload_named(preempted['pod'])} on {preempted['from']}" for preempted in answer["preempted"]
        )

    def other_nodes(self, expect: Json) -> Iterator[str]:
        """Workloads whose pods are elsewhere, and other victims of preemption."""
        workloads = expect["workloads"]
        for name in sorted(workloads.keys() | self.nodes.keys()):
            real, predicted = workloads.get(name, {}).get("nodes", {}), self.nodes.get(name, {})
            if real != predicted:
                yield f"nodes: {name}: real {_counts(real)}, podium {_counts(predicted)}"
        if expect["preempted"] != self.preempted:
            yield f"preempted: real {_counts(expect['preempted'])}, podium {_counts(self.preempted)}"

    def other_names(self, expect: Json) -> Iterator[str]:
        """Pods of certain names that are on other nodes."""
        for key, node in expect.get("pods", {}).items():
            predicted = self.node_of.get(key, "absent")
            if predicted != node:
                yield f"names: {key}: real {node or PENDING}, podium {predicted or PENDING}"

    def other_messages(self, expect: Json) -> Iterator[str]:
        """Workloads whose new pods wait for other reasons."""
        for name, workload in expect["workloads"].items():
            real = Counter(map(self._naming.plain_message, workload["messages"]))
            predicted = Counter(self.messages.get(name, ()))
            if real != predicted:
                yield f"texts: {name}: real {[*(real - predicted)]}, podium {[*(predicted - real)]}"

    def other_refusals(self, expect: Json) -> Iterator[str]:
        """Workloads whose pods are refused by one side only, or for other reasons, and other pods that budgets keep."""
        real = {
            self._naming.top_of(*refusal["object"].split("/")): _reason_in(refusal["message"])
            for refusal in expect["refused"]
        }
        for name in sorted(real.keys() | self.refused.keys()):
            if real.get(name) != self.refused.get(name):
                yield f"refused: {name}: real {real.get(name)}, podium {self.refused.get(name)}"
        blocked_counts = Counter(map(self._naming.workload_named, expect["blocked"]))
        if blocked_counts != self.blocked:
            yield f"blocked: real {_counts(blocked_counts)}, podium {_counts(self.blocked)}"


def _counts(counts: Mapping[str, int]) -> str:
    return "{" + ", ".join(f"{name or PENDING}: {count}" for name, count in sorted(counts.items())) + "}"
