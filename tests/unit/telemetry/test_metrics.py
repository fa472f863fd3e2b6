import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families

from podium.config import RELEASES
from podium.telemetry import Metrics
from podium.telemetry.subsystems.attempts import pod_exemplar
from podium.telemetry.subsystems.pod_groups import OF_POD_GROUPS
from tests.builders import pod

# name → type, labels, number of finite buckets; as kube-scheduler 1.37.2 has them
UPSTREAM = {
    "scheduler_schedule_attempts": ("counter", {"result", "profile"}, 0),
    "scheduler_scheduling_attempt_duration_seconds": ("histogram", {"result", "profile"}, 15),
    "scheduler_scheduling_algorithm_duration_seconds": ("histogram", set(), 15),
    "scheduler_event_handling_duration_seconds": ("histogram", {"event"}, 12),
    "scheduler_preemption_victims": ("histogram", set(), 7),
    "scheduler_preemption_attempts": ("counter", set(), 0),
    "scheduler_pending_pods": ("gauge", {"queue"}, 0),
    "scheduler_inflight_events": ("gauge", {"event"}, 0),
    "scheduler_goroutines": ("gauge", {"operation"}, 0),
    "scheduler_pod_scheduling_sli_duration_seconds": ("histogram", {"attempts"}, 20),
    "scheduler_pod_scheduling_attempts": ("histogram", set(), 5),
    "scheduler_pod_scheduled_after_flush": ("counter", set(), 0),
    "scheduler_framework_extension_point_duration_seconds": ("histogram", {"extension_point", "status", "profile"}, 12),
    "scheduler_plugin_execution_duration_seconds": ("histogram", {"plugin", "extension_point", "status"}, 20),
    "scheduler_plugin_evaluation": ("counter", {"plugin", "extension_point", "profile"}, 0),
    "scheduler_queueing_hint_execution_duration_seconds": ("histogram", {"plugin", "event", "hint"}, 20),
    "scheduler_queue_incoming_pods": ("counter", {"queue", "event"}, 0),
    "scheduler_permit_wait_duration_seconds": ("histogram", {"result"}, 15),
    "scheduler_podgroup_scheduling_algorithm_duration_seconds": ("histogram", set(), 15),
    "scheduler_generated_placements": ("counter", {"profile"}, 0),
    "scheduler_placement_evaluations": ("counter", {"result", "profile"}, 0),
    "scheduler_placement_evaluation_duration_seconds": ("histogram", {"result", "profile"}, 15),
    "scheduler_workload_preemption_attempts": ("counter", {"result"}, 0),
    "scheduler_workload_preemption_victims": ("histogram", set(), 11),
    "scheduler_preemption_workload_disruptions": ("histogram", {"preemptor"}, 11),
    "scheduler_preemption_evaluation_duration_seconds": ("histogram", {"preemptor", "result"}, 16),
    "scheduler_preemption_execution_duration_seconds": ("histogram", {"preemptor", "result"}, 16),
    "scheduler_preemption_goroutines_duration_seconds": ("histogram", {"result"}, 20),
    "scheduler_preemption_goroutines_execution": ("counter", {"result"}, 0),
    "scheduler_preemption_pdb_violations": ("counter", {"preemptor"}, 0),
    "scheduler_cache_size": ("gauge", {"type"}, 0),
    "scheduler_unschedulable_pods": ("gauge", {"plugin", "profile"}, 0),
    "rest_client_requests": ("counter", {"code", "method", "host"}, 0),
    "rest_client_request_duration_seconds": ("histogram", {"verb", "host"}, 12),
    "rest_client_rate_limiter_duration_seconds": ("histogram", {"verb", "host"}, 12),
    "rest_client_request_size_bytes": ("histogram", {"verb", "host"}, 11),
    "rest_client_response_size_bytes": ("histogram", {"verb", "host"}, 11),
    "rest_client_request_retries": ("counter", {"code", "verb", "host"}, 0),
    "informer_processing_latency_seconds": ("histogram", {"name", "group", "version", "resource"}, 12),
    "informer_queued_items": ("gauge", {"name", "group", "version", "resource"}, 0),
    "informer_store_resource_version": ("gauge", {"name", "group", "version", "resource"}, 0),
    "leader_election_master_status": ("gauge", {"name"}, 0),
}

# The same of what podium reads from its owners when it is asked for.
READ = {
    "podium_events": ("counter", {"result"}, 0),
    "podium_events_waiting": ("gauge", set(), 0),
    "podium_writes_in_flight": ("gauge", set(), 0),
    "podium_writes_waiting": ("gauge", {"priority"}, 0),
    "podium_writes_throttled": ("counter", set(), 0),
    "podium_reflector_lists": ("counter", {"resource"}, 0),
    "podium_reflector_watches": ("counter", {"resource"}, 0),
    "podium_reflector_events": ("counter", {"resource"}, 0),
    "podium_reflector_failures": ("counter", {"resource"}, 0),
}


def families(metrics):
    return {family.name: family for family in text_string_to_metric_families(metrics.render().decode())}


@pytest.fixture
def metrics():
    """Metrics after one of everything."""
    metrics = Metrics()
    metrics.count_attempt("scheduled", "podium", 0.003)
    metrics.observe_algorithm(0.001)
    metrics.count_bound(1, 0.01)
    metrics.observe_latency(0.02, pod("web-1"))
    metrics.count_bound(16, 100, after_flush=True)
    metrics.observe_extension_point("Filter", "Success", "podium", 0.0002)
    metrics.observe_plugin("NodeName", "Filter", "Success", 0.00001)
    metrics.count_evaluations("NodeName", "Filter", "podium", 5000)
    metrics.observe_permit_wait("Success", 1)
    metrics.count_preemption_attempt()
    metrics.observe_victims(2)
    metrics.observe_group_victims(8)
    metrics.observe_disruptions("podgroup", 2, violations=1)
    metrics.count_group_preemption_attempt("Success")
    metrics.observe_victim_search("podgroup", "Success", 0.01)
    metrics.observe_preemption("success", 0.1)
    metrics.observe_execution("podgroup", "success", 0.1)
    metrics.count_placements("podium", 2)
    metrics.observe_placement("podium", 0.1, is_feasible=True)
    metrics.observe_handling("", "v1", "pods", 0.001)
    metrics.read_informers(lambda: {("", "v1", "pods"): 12})
    metrics.add_goroutines("binding", 1)
    metrics.add_unschedulable("NodeName", "podium", 1)
    metrics.count_incoming("active", "NodeAdd")
    metrics.observe_event("NodeAdd", 0.001)
    metrics.observe_hint("NodeName", "NodeAdd", "Queue", 0.00001)
    metrics.read_pending_pods(lambda: {"active": 4, "backoff": 0, "unschedulable": 1, "gated": 0})
    metrics.read_inflight_events(lambda: {"PodPopped": 1})
    metrics.read_cache_size(lambda: {"nodes": 2, "pods": 10, "assumed_pods": 1})
    metrics.read_events(results=lambda: {"written": 9, "dropped": 2, "given_up": 1}, waiting=lambda: 4)
    metrics.read_writes(in_flight=lambda: 3, waiting=lambda: {"binding": 5}, throttled=lambda: 1)
    metrics.read_reflectors(
        lists=lambda: {"pods": 2},
        watches=lambda: {"pods": 7},
        events=lambda: {"pods": 90},
        failures=lambda: {"pods": 1},
        missing=lambda: {"elasticquotas": 1},
    )
    metrics.count_request("POST", "127.0.0.1:6443", "201")
    metrics.observe_request("POST", "127.0.0.1:6443", 0.004, 200, 100)
    metrics.count_request_retry("POST", "127.0.0.1:6443", "429")
    metrics.observe_rate_limit("POST", "127.0.0.1:6443", 0)
    metrics.set_leader("kube-scheduler", leads=True)
    metrics.count_unexpected_error("plugin", "NodeName")
    metrics.count_broken_object("Pod")
    return metrics


@pytest.mark.parametrize("families_by_name", [UPSTREAM, READ], ids=["upstream", "read"])
def test_every_metric_has_its_name_type_labels_and_buckets(metrics, families_by_name):
    families_after = families(metrics)
    for name, (kind, labels, buckets) in families_by_name.items():
        family = families_after[name]
        assert family.type == kind, name
        assert set().union(*(sample.labels for sample in family.samples)) - {"le"} == labels, name
        bounds = {sample.labels["le"] for sample in family.samples if "le" in sample.labels}
        assert len(bounds - {"+Inf"}) == buckets, name


def test_only_podiums_own_metrics_go_beyond_upstream(metrics):
    own = {name for name in families(metrics) if name not in UPSTREAM}
    assert all(name.startswith(("podium_", "process_", "python_gc_")) for name in own)


def test_open_metrics_tell_the_same_and_which_pod_took_so_long(metrics):
    families_by_name = {family.name: family for family in open_families(metrics.render(is_open=True).decode())}
    for family in text_string_to_metric_families(metrics.render().decode()):
        samples = {(sample.name, len(sample.labels)) for sample in family.samples}
        assert {(sample.name, len(sample.labels)) for sample in families_by_name[family.name].samples} == samples
        assert families_by_name[family.name].type == family.type
    latency = families_by_name["podium_pod_scheduling_latency_seconds"].samples
    exemplars = {sample.labels["le"]: sample.exemplar for sample in latency if sample.exemplar}
    assert list(exemplars) == ["0.02"]
    assert exemplars["0.02"].labels == {"namespace": "default", "pod": "web-1", "uid": "uid-web-1"}
    assert exemplars["0.02"].value == 0.02


def test_the_text_format_has_no_exemplars(metrics):
    assert b"web-1" not in metrics.render()


def test_an_exemplar_of_a_pod_with_a_long_name_is_its_uid():
    assert pod_exemplar(pod("w" * 100)) == (("uid", "uid-" + "w" * 100),)


def test_no_creation_times_are_shown(metrics):
    assert b"_created" not in metrics.render()


def test_an_attempt_is_counted_and_timed():
    metrics = Metrics()
    metrics.count_attempt("unschedulable", "podium", 0.5)
    labels = {"result": "unschedulable", "profile": "podium"}
    assert metrics.value("scheduler_schedule_attempts_total", **labels) == 1
    assert metrics.value("scheduler_scheduling_attempt_duration_seconds", **labels) == 1
    assert metrics.value("scheduler_schedule_attempts_total", **labels | {"result": "error"}) == 0


@pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (99, "15+")])
def test_many_attempts_share_a_label(attempts, label):
    metrics = Metrics()
    metrics.count_bound(attempts, 2.0)
    assert metrics.value("scheduler_pod_scheduling_sli_duration_seconds", attempts=label) == 1


def test_only_a_pod_that_a_timeout_freed_counts_as_scheduled_after_flush(metrics):
    assert metrics.value("scheduler_pod_scheduled_after_flush_total") == 1


def test_a_reset_starts_counters_and_histograms_again_and_keeps_gauges(metrics):
    metrics.reset()
    assert metrics.value("scheduler_queue_incoming_pods_total", queue="active", event="NodeAdd") == 0
    assert metrics.value("scheduler_scheduling_algorithm_duration_seconds") == 0
    assert metrics.value("scheduler_goroutines", operation="binding") == 1
    assert metrics.value("scheduler_pending_pods", queue="active") == 4
    assert metrics.value("podium_events_total", result="dropped") == 2
    assert metrics.value("podium_writes_throttled_total") == 1
    metrics.count_preemption_attempt()
    assert metrics.value("scheduler_preemption_attempts_total") == 1


def test_what_has_no_owner_yet_is_zero_and_not_shown():
    metrics = Metrics()
    assert metrics.value("podium_events_waiting") == metrics.value("podium_events_total", result="written") == 0
    assert metrics.values("podium_events_waiting") == {}
    assert b"podium_events_waiting" not in metrics.render()


def test_an_unknown_name_is_an_error():
    with pytest.raises(KeyError):
        Metrics().value("scheduler_nothing")


def test_two_schedulers_in_one_process_count_apart():
    first, second = Metrics(), Metrics()
    first.count_preemption_attempt()
    assert second.value("scheduler_preemption_attempts_total") == 0


def test_collectors_of_others_can_join(metrics):
    Counter("my_policy_hits", "Hits.", registry=metrics.registry).inc()
    assert "my_policy_hits" in families(metrics)
    assert isinstance(metrics.registry, CollectorRegistry)


def hide_of(metrics, minor):
    release = RELEASES[minor]
    metrics.hide(release.hidden_metrics | release.deprecated_metrics)


@pytest.mark.parametrize(
    ("minor", "shown", "hidden"),
    [
        (
            "1.37",
            "dynamic_resource_allocation_resourceclaim_creates_total",
            ("scheduler_resourceclaim_creates_total", "scheduler_preemption_goroutines_duration_seconds"),
        ),
        (
            "1.36",
            "scheduler_resourceclaim_creates_total",
            (
                "dynamic_resource_allocation_resourceclaim_creates_total",
                "scheduler_queued_entities",
                "scheduler_preemption_execution_duration_seconds",
                "scheduler_preemption_evaluation_duration_seconds",
                "scheduler_placement_evaluations_total",
                "informer_processing_latency_seconds",
                "scheduler_workload_preemption_victims",
            ),
        ),
    ],
)
def test_each_minor_shows_the_metrics_that_it_has(minor, shown, hidden):
    metrics = Metrics()
    hide_of(metrics, minor)
    metrics.count_created_claim("success")
    metrics.observe_preemption("success", 1.0)
    metrics.observe_execution("pod", "success", 1.0)
    metrics.observe_victim_search("pod", "Success", 1.0)
    metrics.observe_placement("podium", 1.0, is_feasible=True)
    metrics.observe_handling("", "v1", "pods", 0.1)
    metrics.read_queued_entities(lambda: {("active", "pod"): 1})
    text = metrics.render().decode()
    assert f"\n{shown}{{" in text
    assert not [name for name in hidden if name in text]


def test_claims_are_counted_as_those_of_pods():
    metrics = Metrics()
    metrics.count_created_claim("failure")
    name = "dynamic_resource_allocation_resourceclaim_creates_total"
    assert metrics.values(name) == {("failure", "false", "", "Pod"): 1}


# As the two binaries list them with every feature gate on that podium has.
ONLY_IN_1_36 = {"scheduler_preemption_goroutines_duration_seconds", "scheduler_resourceclaim_creates_total"}
ONLY_IN_1_37 = {
    "dynamic_resource_allocation_resourceclaim_creates_total",
    "informer_processing_latency_seconds",
    "informer_queued_items",
    "informer_store_resource_version",
    "scheduler_generated_placements_total",
    "scheduler_placement_evaluation_duration_seconds",
    "scheduler_placement_evaluations_total",
    "scheduler_preemption_evaluation_duration_seconds",
    "scheduler_preemption_execution_duration_seconds",
    "scheduler_preemption_pdb_violations_total",
    "scheduler_preemption_workload_disruptions",
    "scheduler_queue_incoming_entities_total",
    "scheduler_queued_entities",
    "scheduler_workload_preemption_attempts_total",
    "scheduler_workload_preemption_victims",
}


@pytest.mark.parametrize(("minor", "absent"), [("1.36", ONLY_IN_1_37), ("1.37", ONLY_IN_1_36)])
def test_each_minor_has_all_metrics_but_those_of_the_other_one(minor, absent):
    metrics = Metrics()
    names = {family.name for family in metrics.families}
    hide_of(metrics, minor)
    assert names - {family.name for family in metrics.families} == absent


def test_deprecated_metric_says_since_when():
    metrics = Metrics()
    metrics.deprecate(RELEASES["1.37"].deprecated_metrics, "1.37.0")
    metrics.observe_preemption("success", 1.0)
    name = "scheduler_preemption_goroutines_duration_seconds"
    assert f"# HELP {name} (Deprecated since 1.37.0) " in metrics.render().decode()


def test_metrics_of_groups_exist_and_are_hidden_without_groups():
    metrics = Metrics()
    assert {family.name for family in metrics.families} >= OF_POD_GROUPS
    assert b"scheduler_workload_preemption_victims_count 0" in metrics.render()
    metrics.hide(OF_POD_GROUPS)
    metrics.observe_preemption("success", 1.0)
    metrics.observe_execution("pod", "success", 1.0)
    text = metrics.render().decode()
    assert not [name for name in OF_POD_GROUPS if name in text]


def test_placements_are_counted_by_their_feasibility():
    metrics = Metrics()
    metrics.count_placements("podium", 3)
    for is_feasible in (True, False, False):
        metrics.observe_placement("podium", 0.1, is_feasible=is_feasible)
    counts = {("feasible", "podium"): 1, ("infeasible", "podium"): 2}
    assert metrics.values("scheduler_generated_placements_total") == {("podium",): 3}
    assert metrics.values("scheduler_placement_evaluations_total") == counts
    assert metrics.values("scheduler_placement_evaluation_duration_seconds") == counts


def test_informers_have_upstreams_names_and_the_last_digits_of_their_versions():
    metrics = Metrics()
    metrics.read_informers(lambda: {("", "v1", "pods"): 1_234_567_890_123_456_789, ("apps", "v1", "replicasets"): -1})
    pods, replica_sets = ("kube-scheduler", "", "v1", "pods"), ("kube-scheduler", "apps", "v1", "replicasets")
    assert metrics.values("informer_store_resource_version") == {pods: 567_890_123_456_789}
    assert metrics.values("informer_queued_items") == {pods: 0, replica_sets: 0}
    metrics.observe_handling("", "v1", "pods", 0.5)
    assert metrics.values("informer_processing_latency_seconds") == {pods: 1}
