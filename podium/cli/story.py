"""Reads a pod's story from the answer of a running podium, and prints it as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from rich.console import RenderableType

from podium.cli.asking import show
from podium.cli.device_table import devices_missing
from podium.cli.plain_text import plain
from podium.cli.why_table import blockers_of, condition_lines, scores_and_groups
from podium.config.scheduler_names import similar_name


# Only the fields that are shown: a podium of another version may send more.
class _NextTry(Struct):
    text: str


class _Queued(Struct, rename="camel"):
    queue: str
    next_try: _NextTry | None
    gating_plugin: str
    reason: str


class _Attempt(Struct, rename="camel"):
    at: str
    attempt: int
    result: str
    node: str
    message: str
    nodes: int
    examined: int
    feasible: int
    decision_seconds: float


class _Score(Struct):
    node: str
    total: int
    plugins: Mapping[str, int]


class _Group(Struct):
    count: int
    plugin: str
    text: str
    examples: tuple[str, ...]
    detail: str = ""


class _Blocker(Struct):
    plugin: str
    text: str
    detail: str = ""


class _Findings(Struct):
    """The findings of an attempt about nodes."""

    at: str
    groups: tuple[_Group, ...]
    scores: tuple[_Score, ...]
    blockers: Mapping[str, tuple[_Blocker, ...]]
    verdict: str = ""


class _Gang(Struct):
    """The progress of the pod's gang in sentences, the first of which names the gang."""

    text: tuple[str, ...]


class _Refusal(Struct):
    """The reasons of a single node."""

    details: tuple[str, ...] = ()


class _Devices(Struct):
    """Nodes that have no devices for the pod, for equal reasons."""

    reasons: tuple[str, ...]
    count: int
    examples: tuple[str, ...]
    nodes: Mapping[str, _Refusal]


class Story(Struct):
    """The shown part of the page /debug/pods.

    Attributes:
        leader: the leader if this replica does not lead; "" if unknown, None if this replica leads.
        attempts: the attempts, newest first.
        scheduler_name: the pod's scheduler name; `profiles` are the names that podium serves, empty if unknown.
        condition: the pod's PodScheduled condition in addition to the last attempt.
        why: the findings of the newest attempt that has some.
        gang: None if the pod is in no gang.
        devices: the devices that its claims lack now, on some of the nodes.
    """

    pod: str
    bound_to: str
    exists: bool
    leader: str | None
    queue: _Queued | None
    attempts: tuple[_Attempt, ...]
    why: _Findings | None
    gang: _Gang | None = None
    devices: tuple[_Devices, ...] = ()
    scheduler_name: str = ""
    profiles: tuple[str, ...] = ()
    condition: Mapping[str, Any] | None = None

    @property
    def serves_pod(self) -> bool:
        """True if one of podium's profiles schedules the pod, or the answer does not say."""
        return not self.profiles or self.scheduler_name in self.profiles

    @property
    def fits_nowhere(self) -> bool:
        """True if the last attempt at a pending pod found no node."""
        return not self.bound_to and bool(self.attempts) and not self.attempts[0].node


read_story = msgspec.json.Decoder(Story).decode
"""Raises msgspec.DecodeError or UnicodeDecodeError if the answer is no story."""


def print_story(story: Story, asked_node: str, leader: str = "") -> None:
    """Print the pod's node or state, its next attempt, and the findings of the last attempt.

    Args:
        asked_node: the node in question; "" for none.
        leader: the pod of the podium that has answered; "" if the user has named it.
    """
    parts = story_head(story, leader)
    if story.condition is not None:
        parts += condition_lines(story.condition, is_pending=story.exists and not story.bound_to)
    if story.why is not None:
        parts += _findings(story, story.why, asked_node)
        parts += devices_missing(story.devices, asked_node, "devices, as they are now on some of these nodes:")
    elif story.attempts:
        parts.append(plain("What the attempts found out about nodes is no longer kept"))
    # The ring of attempts is bounded, and details are the first to be dropped.
    show(*parts)


def story_head(story: Story, leader: str) -> list[RenderableType]:
    """Describe the pod's node or state, its next attempt, and the result of the last attempt.

    Args:
        leader: the pod of the podium that has answered; "" if the user has named it.
    """
    parts: list[RenderableType] = [] if story.serves_pod else [plain(_not_served(story), "red")]
    parts.append(plain(_place(story), "bold"))
    if leader:
        parts.append(plain(f"Told by {leader}, the running podium that leads"))
    if story.leader is not None:
        leader_text = f"{story.leader} leads: ask it" if story.leader else "the leader is not known"
        parts.append(plain(f"This replica stands by; {leader_text}", "yellow"))
    else:
        parts += _queue(story)
    if story.gang is not None and story.gang.text:
        parts.append(plain(story.gang.text[0], "bold"))
        parts += [plain(f"  {line}") for line in story.gang.text[1:]]
    return parts + _last_attempt(story)


def queue_lines(story: Story, leader: str) -> list[str]:
    """Return what the running podium alone knows of a pending pod: its queue, its next attempt, and its last one."""
    if story.bound_to or not story.exists:
        return []
    queue = story.queue
    place = "is not in its queue" if queue is None else f"waits in its queue, {queue.queue}"
    last = f", after attempt {story.attempts[0].attempt} at {story.attempts[0].at}" if story.attempts else ""
    if queue is None:
        return [f"{leader}: {story.pod} {place}{last}"]
    next_try = "; it is being tried" if queue.next_try is None else f"; next try: {queue.next_try.text}"
    gate = [f"  gated by {queue.gating_plugin}: {queue.reason}"] if queue.gating_plugin else []
    return [f"{leader}: {story.pod} {place}{last}{next_try}", *gate]


def last_message(story: Story) -> str:
    """Return the message of the last attempt if it found no node; otherwise ""."""
    return story.attempts[0].message if story.attempts and not story.attempts[0].node else ""


def _place(story: Story) -> str:
    if not story.exists:
        return f"{story.pod} was deleted"
    return f"{story.pod} is on {story.bound_to}" if story.bound_to else f"{story.pod} is pending"


def _not_served(story: Story) -> str:
    serves = f"this podium serves {', '.join(story.profiles)}"
    text = f"No profile serves spec.schedulerName {story.scheduler_name}"
    suggestion = similar_name(story.scheduler_name, story.profiles)
    return f"{text}: {serves}; did you mean {suggestion}?" if suggestion else f"{text}: {serves}"


def _queue(story: Story) -> list[RenderableType]:
    """Describe the queue of a waiting pod, the reason, and its next attempt."""
    queue = story.queue
    if queue is None:
        waits = story.exists and not story.bound_to
        return [plain("It is not in podium's queue: another scheduler may be meant to place it")] if waits else []
    if queue.next_try is None:
        return [plain("It is being scheduled")]
    parts: list[RenderableType] = [plain(f"It waits in the queue: {queue.queue}; next try: {queue.next_try.text}")]
    if queue.gating_plugin:
        parts.append(plain(f"It is gated by {queue.gating_plugin}: {queue.reason}"))
    return parts


def _last_attempt(story: Story) -> list[RenderableType]:
    if not story.attempts:
        return [plain("No attempt to schedule it is on record")]
    last = story.attempts[0]
    fit = f"{last.feasible} of the {last.examined} nodes examined fit ({last.nodes} in the cluster)"
    line = f"Attempt {last.attempt}, at {last.at}, took {last.decision_seconds * 1000:.2f} ms: {fit}"
    ends = {"scheduled": f"It was bound to {last.node}", "binding": f"It is being bound to {last.node}"}
    return [plain(line), plain(ends.get(last.result, f"It was not scheduled: {last.message}"))]


def _findings(story: Story, findings: _Findings, asked_node: str) -> list[RenderableType]:
    parts: list[RenderableType] = []
    # Later attempts may have ended before they looked at nodes.
    if findings.at != story.attempts[0].at:
        parts.append(plain(f"Nodes, as the attempt at {findings.at} evaluated them:"))
    scores = [(score.node, score.total, score.plugins) for score in findings.scores]
    groups = [
        (group.count, group.plugin, f"{group.text}: {group.detail}" if group.detail else group.text, group.examples)
        for group in findings.groups
    ]
    parts += scores_and_groups(scores, findings.verdict, groups, {asked_node})
    if asked_node:
        blockers = [(blocker.plugin, blocker.text, blocker.detail) for blocker in findings.blockers.get(asked_node, ())]
        parts += blockers_of(asked_node, blockers) or [plain(_about(findings, asked_node))]
    return parts


def _about(findings: _Findings, node: str) -> str:
    """Describe a node without a known blocker."""
    total = next((score.total for score in findings.scores if score.node == node), None)
    return f"The attempt did not look at {node}" if total is None else f"It fits on {node}, with a score of {total}"
