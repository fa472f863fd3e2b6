"""The switches in which minors of Kubernetes differ, grouped by the part of podium that they are given to.

Their values stand in `podium.config.releases`, one row for each minor.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.cel import SelectorRules
from podium.objects.resource_types import EventResource


@dataclass(frozen=True, slots=True)
class EventRules:
    """Which cluster events there are, and which ones in-tree plugins register for.

    Attributes:
        target_pod: the resource of an update of the waiting pod itself.
        unscheduled_pod: the resource of a change of another pod without a node.
        own_pod: the resource that plugins register for to hear of the waiting pod itself.
        assigned_pods: the resource that plugins register for to hear of pods on nodes.
        have_scale_up: a pod whose request grows raises an event of its own.
        widen_node_add: a plugin that waits for added nodes also hears of every change of a node's taints.
        match_any_anti_affinity: a pod that matches one required anti-affinity term is in the way, not only one that
            matches all of them.
    """

    target_pod: EventResource
    unscheduled_pod: EventResource
    own_pod: EventResource
    assigned_pods: EventResource
    have_scale_up: bool
    widen_node_add: bool
    match_any_anti_affinity: bool


@dataclass(frozen=True, slots=True)
class QueueRules:
    """The rules of the scheduling queue.

    Attributes:
        nominate_on_add: a pod that names a nominated node in its status is nominated when it is added; before, when it
            enters the active queue, so that gated pods are not.
        flush_gated: a gated pod is checked again when it has waited very long without an event; before, never.
        renew_strangers: an update of a pod that is not queued, or is queued with another uid, adds it as a new one;
            before, it counted as an update, and the pod took the place of the other one with its attempts.
        has_group_entries: with GenericWorkload, a pod group is one entry of the queue, and is tried and preempted for
            as a whole; before, its pods waited one by one, and were tried together when one of them was popped.
    """

    nominate_on_add: bool
    flush_gated: bool
    renew_strangers: bool
    has_group_entries: bool


@dataclass(frozen=True, slots=True)
class DeviceRules:
    """The rules of a search for devices, and of the claims that get them.

    Attributes:
        selectors: the environment of device selectors.
        name_failing_device: the error of a selector names the device, and the remedy if an attribute is missing.
        shorten_config: a configuration of a claim stands in the allocation once, and without requests if it is for all;
            before, once for each request that it names.
        compare_all_distinct: `distinctAttribute` compares all devices; before, the latest one of each request.
        undo_all: whatever a device that is not taken has changed is undone: counters, capacities and constraints.
        place_counters: a slice of counters makes its pool known to the nodes that it selects; before, to all.
        list_full_devices: a request for all devices includes those whose capacity is used up, and fails for them.
        check_amounts: negative and too large amounts of capacity are errors, and rounded ones have the step's format.
        round_to_thousandths: with a gate, amounts of capacity are rounded in thousandths; else to integers first.
        limit_each_request: the limit of devices is checked at each request of a claim; before, after all of them.
        refuse_alpha_fields: derived attributes, compatibility groups and skipped node operations are refused; before,
            they were unknown.
        need_rule_selector: a DeviceTaintRule without a selector taints no device; before, all.
        wake_on_deletion: a deleted claim that was allocated wakes the pods that wait for devices.
        fly_until_bound: an allocation is in flight until PreBind has ended; before, until its claim was written.
    """

    selectors: SelectorRules
    name_failing_device: bool
    shorten_config: bool
    compare_all_distinct: bool
    undo_all: bool
    place_counters: bool
    list_full_devices: bool
    check_amounts: bool
    round_to_thousandths: bool
    limit_each_request: bool
    refuse_alpha_fields: bool
    need_rule_selector: bool
    wake_on_deletion: bool
    fly_until_bound: bool


@dataclass(frozen=True, slots=True)
class PreemptionRules:
    """The rules of PostFilter, and of evicting victims.

    Attributes:
        tell_node: the text of a pod that does not fit ends in the node that is made room on, and the number of victims;
            before, after the reasons of the nodes.
        stop_at_exhausted_budget: the first budget that a pod exceeds ends the count of this pod; before, each budget of
            the pod was counted down.
        tell_no_deallocation: DynamicResources says that it could not free devices.
        wake_after_last_in_memory: the preemptor is activated if its last victim was not bound yet, and so not deleted.
        count_terminating: a preemption all of whose victims are being deleted already is observed.
        count_groups_apart: the victims of a preemption for a group have a metric of their own.
    """

    tell_node: bool
    stop_at_exhausted_budget: bool
    tell_no_deallocation: bool
    wake_after_last_in_memory: bool
    count_terminating: bool
    count_groups_apart: bool
