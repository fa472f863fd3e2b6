from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from podium.cluster import Cache, pod_usage
from podium.engine.simulated_cache import fork_with_point
from podium.framework.contract.filter import FilterPlugin, PreFilterPlugin, PreFilterResult
from podium.framework.contract.plugin import Scope
from podium.framework.contract.status import SKIP, Status, unresolvable, unschedulable
from podium.framework.cycle.search import Rotation
from podium.framework.profile.signature_cache import SIGNATURES_MAX, SignatureCache
from podium.lib.change_log import ChangeLog
from podium.objects.core import PodResourceClaim
from tests.builders import cache_of, node, pod
from tests.fuzz.crowds import CROWDS
from tests.unit.framework.profiles import Built, Recorder, cluster, decide, framework, node_filter, node_scorer


def test_specs_of_which_one_pod_has_come_are_not_all_remembered() -> None:
    snapshot = cluster(1)
    classes = SignatureCache(framework())
    for number in range(SIGNATURES_MAX + 50):
        assert classes.of(pod("web", labels={"number": "same"}, cpu=f"{number + 1}m"), snapshot) is None
    assert classes.statistics() == {"signatures": 0, "specs seen once": SIGNATURES_MAX}


@pytest.mark.parametrize(("has_plugin_from_outside", "signature_count"), [(False, 1), (True, 0)])
def test_pods_with_different_claims_share_a_signature_unless_a_plugin_may_read_them(
    has_plugin_from_outside: bool, signature_count: int
) -> None:
    snapshot = cluster(1)
    classes = SignatureCache(Counting().profile if has_plugin_from_outside else framework())
    for number in range(2):
        claims = (PodResourceClaim(name="gpu", resource_claim_name=f"claim-{number}"),)
        item = pod(f"p{number}")
        classes.of(replace(item, spec=replace(item.spec, resource_claims=claims)), snapshot)
    assert classes.statistics()["signatures"] == signature_count


# ---------------------------------------------------------------- with plugins made up for the purpose


class Counting:
    """Plugins that note which nodes they are asked about, and look no further than they are told."""

    def __init__(self, scope: Scope = Scope.NODE, rejected_names: tuple[str, ...] = ()) -> None:
        self.asked: list[str] = []
        self.scored: list[str] = []
        self.filter = node_filter("F", self._judge, filter_scope=lambda _, spec: scope)
        self.scorer = node_scorer("S", self._score, score_scope=lambda _, spec: scope)
        self.rejected = rejected_names
        self.profile = framework(self.filter, self.scorer)

    def _judge(self, name: str) -> Status | None:
        self.asked.append(name)
        return unschedulable("no") if name in self.rejected else None

    def _score(self, name: str) -> int:
        self.scored.append(name)
        return int(name[1:]) % 101

    def attempts(self, cache: Cache, number: int) -> list[str]:
        """The nodes that the filter is asked about in the last of so many attempts."""
        for index in range(number):
            self.asked.clear()
            decide(self.profile, pod(f"p{index}"), cache.snapshot())
        return self.asked


@pytest.mark.parametrize(
    ("scope", "after_pod", "after_label"),
    [
        (Scope.NODE, [], ["n1"]),
        (Scope.USAGE, ["n0"], ["n1"]),
        (Scope.PODS_ON_NODE, ["n0"], ["n1"]),
        (Scope.CLUSTER, ["n0", "n1", "n2"], ["n0", "n1", "n2"]),
    ],
)
def test_plugin_is_asked_again_where_something_in_its_scope_has_changed(scope, after_pod, after_label):
    counting, cache = Counting(scope), cache_of(node("n0"), node("n1"), node("n2"))
    assert counting.attempts(cache, 2) == ["n0", "n1", "n2"]
    nobody_changed = counting.attempts(cache, 1)
    assert nobody_changed == ([] if scope is not Scope.CLUSTER else ["n0", "n1", "n2"])
    cache.add_pod(pod("other", node="n0"))
    assert counting.attempts(cache, 1) == after_pod
    cache.put_node(node("n1", labels={"disk": "ssd"}))
    assert counting.attempts(cache, 1) == after_label
    cache.put_node(node("n1", labels={"disk": "ssd"}))  # a heartbeat
    assert counting.attempts(cache, 1) == nobody_changed


@pytest.mark.parametrize("few_rows", [0, 3])
def test_rejected_nodes_are_left_out_when_they_change_and_after_the_filter_has_failed(few_rows, monkeypatch):
    monkeypatch.setattr("podium.framework.profile.pod_signature.FEW_ROWS", few_rows)
    rejected_names: set[str] = set()

    def judge(name: str) -> Status | None:
        if "failing" in rejected_names:
            raise OSError("x")
        return unschedulable("no") if name in rejected_names else None

    profile = framework(
        node_filter("F", judge, filter_scope=lambda _, spec: Scope.NODE), node_scorer("S", lambda name: 0)
    )
    cache = cache_of(*(node(f"n{number}") for number in range(8)))
    for _ in range(3):
        decide(profile, pod(), cache.snapshot())
    counts = []
    for turn, names in enumerate((set(), {"n1"}, {"n1", "n2"}, {"failing"}, {"n2"}, set(), {"n1"})):
        rejected_names.clear()
        rejected_names.update(names)
        for name in ("n1", "n2"):
            cache.put_node(node(name, labels={"turn": f"{turn}"}))
        counts.append(getattr(decide(profile, pod(), cache.snapshot()), "feasible_nodes", 0))
    assert counts == [8, 7, 6, 0, 7, 8, 7]


def test_rows_that_differ_in_a_fork_are_asked_about_again_when_it_is_left():
    counting, cache = Counting(Scope.USAGE), cache_of(node("n0"), node("n1"), node("n2"))
    counting.attempts(cache, 2)
    fork, member = fork_with_point(cache.snapshot()), pod("member")
    fork.add_pod(fork.row_of["n0"], member.on_node("n0"), pod_usage(member))
    counting.asked.clear()
    decide(counting.profile, pod("next"), fork)
    assert counting.asked == ["n0"]
    cache.add_pod(pod("other", node="n1"))
    assert sorted(counting.attempts(cache, 1)) == ["n0", "n1"]


def test_fork_whose_nodes_have_changed_uses_no_cached_answers():
    counting, cache = Counting(), cache_of(node("n0"), node("n1"))
    counting.attempts(cache, 2)
    fork = fork_with_point(cache.snapshot())
    assert counting.profile.signatures.of(pod("web"), fork) is not None
    cache.put_node(node("n1", labels={"disk": "ssd"}))
    cache.snapshot()
    assert counting.profile.signatures.of(pod("web"), fork) is None


class Elsewhere(Counting):
    """A filter and a scorer whose answers also depend on what is in no snapshot."""

    def __init__(self, scope: Scope) -> None:
        self.log: ChangeLog[int] = ChangeLog(4)
        super().__init__(scope)
        self.filter.outside_changes = lambda _, snapshot: self.log
        self.scorer.outside_changes = lambda _, snapshot: self.log


@pytest.mark.parametrize("scope", [Scope.NODE, Scope.USAGE, Scope.PODS_ON_NODE])
def test_rows_that_changed_outside_of_the_snapshot_are_asked_about_again(scope):
    elsewhere, cache = Elsewhere(scope), cache_of(node("n0"), node("n1"), node("n2"))
    assert elsewhere.attempts(cache, 2) == ["n0", "n1", "n2"]
    assert elsewhere.attempts(cache, 1) == []
    elsewhere.scored.clear()
    elsewhere.log.append(cache.snapshot().row_of["n1"])
    assert elsewhere.attempts(cache, 1) == elsewhere.scored == ["n1"]
    assert elsewhere.attempts(cache, 1) == []


def test_another_log_of_outside_changes_stands_for_all_rows():
    elsewhere, cache = Elsewhere(Scope.USAGE), cache_of(node("n0"), node("n1"), node("n2"))
    elsewhere.attempts(cache, 2)
    elsewhere.scored.clear()
    elsewhere.log = ChangeLog()
    assert elsewhere.attempts(cache, 1) == elsewhere.scored == ["n0", "n1", "n2"]


def test_a_log_of_outside_changes_that_no_longer_reaches_back_stands_for_all_rows():
    elsewhere, cache = Elsewhere(Scope.USAGE), cache_of(node("n0"), node("n1"), node("n2"))
    elsewhere.attempts(cache, 2)
    for _ in range(20):
        elsewhere.log.append(0)
    assert elsewhere.attempts(cache, 1) == ["n0", "n1", "n2"]


def test_a_pod_of_another_qos_class_than_its_spec_has_is_judged_by_itself():
    counting, cache = Counting(), cache_of(node("n0"), node("n1"))
    counting.attempts(cache, 3)
    counting.asked.clear()
    decide(counting.profile, pod("odd", status={"qosClass": "Guaranteed"}), cache.snapshot())
    assert counting.asked == ["n0", "n1"]


@pytest.mark.parametrize(("scope", "question_count"), [(Scope.USAGE, []), (Scope.PODS_ON_NODE, ["n0"])])
def test_new_labels_of_a_pod_on_the_node_change_no_usage(scope, question_count):
    counting, cache = Counting(scope), cache_of(node("n0"), node("n1"))
    cache.add_pod(pod("other", node="n0"))
    counting.attempts(cache, 3)
    cache.update_pod(pod("other", node="n0", labels={"zone": "a"}))
    assert counting.attempts(cache, 1) == question_count


def test_rejected_node_is_scored_when_it_passes_again_and_for_all_that_has_changed_meanwhile():
    counting, cache = Counting(rejected_names=("n2",)), cache_of(node("n0"), node("n1"), node("n2"))
    counting.attempts(cache, 3)
    counting.scored.clear()
    cache.put_node(node("n2", labels={"disk": "ssd"}))
    counting.attempts(cache, 1)
    assert counting.scored == []
    counting.rejected = ()
    cache.put_node(node("n2"))
    assert decide(counting.profile, pod("last"), cache.snapshot()).node_name == "n2"
    assert counting.scored == ["n2"]


def test_row_that_is_given_to_another_node_is_looked_at_again():
    counting, cache = Counting(rejected_names=("n1",)), cache_of(node("n0"), node("n1"))
    counting.attempts(cache, 3)
    row = cache.snapshot().row_of["n1"]
    cache.remove_node("n1")
    cache.put_node(node("n9"))
    assert counting.attempts(cache, 1) == ["n9"]
    assert cache.snapshot().row_of["n9"] == row
    assert decide(counting.profile, pod("last"), cache.snapshot()).node_name == "n9"


def test_the_first_pod_of_a_spec_costs_no_look_at_all_nodes():
    counting, cache = Counting(), cache_of(*(node(f"n{index}") for index in range(1000)))
    assert len(counting.attempts(cache, 1)) < 1000
    assert len(counting.attempts(cache, 1)) == 1000
    assert counting.profile.signatures.statistics() == {"signatures": 1, "specs seen once": 0}


def test_the_class_not_met_for_the_longest_is_forgotten():
    counting, snapshot = Counting(), cluster(4)
    counting.profile.signatures = cache = SignatureCache(counting.profile, rows_max=2 * len(snapshot.nodes))
    for cpu in ("1m", "1m", "2m", "2m", "1m", "3m"):
        decide(counting.profile, pod(cpu=cpu), snapshot)
    assert cache.statistics() == {"signatures": 1, "specs seen once": 1}
    counting.asked.clear()
    decide(counting.profile, pod(cpu="1m"), snapshot)
    assert counting.asked == []


def test_pods_that_are_turned_down_for_their_size_are_in_no_class():
    counting, snapshot = Counting(), cluster(3)
    for _ in range(4):
        decide(counting.profile, pod(affinity=CROWDS["node terms"](range(1_001))["affinity"]), snapshot)
    assert counting.asked == []
    assert counting.profile.signatures.statistics()["signatures"] == 0


def test_another_snapshot_begins_anew():
    counting = Counting()
    for snapshot in (cluster(3), cluster(3), cluster(4), cluster(4)):
        decision = decide(counting.profile, pod(), snapshot)
        assert decision.feasible_nodes == len(snapshot)
    assert counting.profile.signatures.statistics() == {"signatures": 1, "specs seen once": 0}


def test_pod_that_is_being_resized_is_judged_by_itself():
    counting, snapshot = Counting(), cluster(3)
    resized = pod(status={"containerStatuses": [{"name": "main"}]})
    for _ in range(3):
        counting.asked.clear()
        decide(counting.profile, resized, snapshot)
        assert counting.asked == ["n0", "n1", "n2"]


def test_plugin_that_fails_on_a_node_that_no_attempt_gets_to_fails_nobody():
    def judge(name: str) -> Status | None:
        if name == "n999":
            raise OSError("x")
        return None

    failing = node_filter("F", judge, filter_scope=lambda _, spec: Scope.NODE)
    recorder = Recorder()
    profile = framework(failing, node_scorer("S", lambda name: 0), observer=recorder)
    for _ in range(4):
        assert decide(profile, pod(), cluster(1000)).node_name == "n0"
    assert recorder.failures == []
    decision = decide(profile, pod(), cluster(1000), rotation=Rotation(990))
    assert decision.status.message == 'running "F" filter plugin: OSError: x'
    assert recorder.failures == [("F", "Filter", "x")]


@dataclass(frozen=True)
class LocatedManifest:
    """The value that a PreFilter writes."""

    word: str


class Tried(LocatedManifest):
    def clone(self) -> Tried:
        return self


@pytest.mark.parametrize(
    ("answer", "written_value", "times_asked"),
    [
        ((None, None), LocatedManifest("x"), 2),
        ((None, SKIP), None, 2),
        ((None, None), Tried("x"), 5),
        ((PreFilterResult(frozenset({"n1"})), None), None, 5),
        ((None, unresolvable("never")), None, 5),
    ],
)
def test_pre_filter_answers_once_where_its_answer_can_be_given_again(answer, written_value, times_asked):
    questions = []

    def pre_filter(self, state, item, snapshot):
        questions.append(item)
        if written_value is not None:
            state.write(written_value)
        return answer

    def judge(self, state, item, node):
        assert written_value is None or state.read(type(written_value)) is written_value

    methods = {"pre_filter": pre_filter, "filter": judge, "filter_scope": lambda _, spec: Scope.NODE}
    plugin = type("P", (Built, PreFilterPlugin, FilterPlugin), methods)
    profile = framework(plugin, node_scorer("S", lambda name: 0))
    decisions = [decide(profile, pod(), cluster(2)) for _ in range(4)]
    assert len({str(decision) for decision in decisions}) == 1
    assert len(questions) == times_asked


def test_scores_that_are_all_equal_are_normalised_with_the_others_once_one_differs():
    levels = {"n0": 7, "n1": 7, "n2": 7}
    scorer = node_scorer(
        "S",
        lambda name: levels[name],
        score_scope=lambda _, spec: Scope.PODS_ON_NODE,
        normalize_scores=lambda self, state, item, scores: 100 * scores // scores.max(),
    )
    profile, cache = framework(node_filter("F", lambda name: None), scorer), cache_of(*map(node, levels))
    for _ in range(3):
        assert decide(profile, pod(), cache.snapshot()).node_name == "n0"
    levels["n1"] = 8
    cache.add_pod(pod("other", node="n1"))
    assert decide(profile, pod(), cache.snapshot()).node_name == "n1"
