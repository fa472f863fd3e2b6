from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Snapshot
from podium.framework.contract.filter import (
    FilterPlugin,
    OnlyRows,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
)
from podium.framework.contract.status import SKIP, Code, Status, error_status, unresolvable, unschedulable
from podium.framework.contract.steps import run_unasked
from podium.framework.cycle.closed_nodes import NODE_CLOSED
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import FitError
from podium.framework.cycle.search import Rotation, Sampling, ScheduleError, count_to_find, find_feasible
from podium.objects.core import Pod
from podium.queues import Nominator
from tests.builders import node, pod, snapshot_of
from tests.fuzz.crowds import CROWDS
from tests.unit.framework.profiles import (
    Built,
    Nominated,
    Recorder,
    cluster,
    decide,
    framework,
    node_filter,
    node_scorer,
    passing,
    pre_filter,
    raising,
    statuses,
    table_filter,
)

SCORER = node_scorer("S", lambda name: 0)


class Search:
    """One search and what came of it."""

    def __init__(self, profile, snapshot, *, item=None, nominations=None, start=0, percentage=0) -> None:
        self.rotation = Rotation(start)
        self.snapshot = snapshot
        self._percentage = percentage
        self._cycle = Cycle(profile, item or pod(), snapshot, nominations or Nominator({}.get))
        self.state, self.diagnosis = self._cycle.state, self._cycle.diagnosis

    def run(self) -> Search:
        is_one_enough = not self._cycle.framework.scorers
        search = find_feasible(self._cycle, Sampling(self.rotation, self._percentage, is_one_enough))
        self.found = run_unasked(search)
        return self

    @property
    def names(self) -> list[str]:
        return [self.snapshot.name(row) for row in self.found.rows]

    @property
    def statuses(self) -> dict[str, str]:
        return statuses(self.diagnosis, self.snapshot)


def search(*plugins, nodes=4, **options) -> Search:
    return Search(framework(*plugins, SCORER), options.pop("snapshot", None) or cluster(nodes), **options).run()


def rejecting(name: str, *nodes: str, reason: str = "no"):
    return node_filter(name, lambda node_name: unschedulable(reason) if node_name in nodes else None)


# ---------------------------------------------------------------- how many


@pytest.mark.parametrize(
    ("node_count", "percentage", "count"),
    [
        (0, 0, 0),
        (1, 50, 1),
        (99, 10, 99),
        (100, 0, 100),
        (100, 100, 100),
        (150, 50, 100),
        (400, 50, 200),
        (401, 50, 200),
        (1000, 0, 420),
        (1000, 5, 100),
        (2000, 5, 100),
        (3000, 5, 150),
        (5000, 0, 500),
        (5000, 100, 5000),
        (5624, 0, 337),
        (5625, 0, 281),
        (6000, 0, 300),
        (20000, 0, 1000),
    ],
)
def test_number_of_nodes_to_find(node_count, percentage, count):
    assert count_to_find(node_count, percentage) == count


def test_one_node_is_enough_where_nothing_scores():
    without_scorer = Search(framework(rejecting("F", "n0")), cluster(4)).run()
    assert without_scorer.names == ["n1"]
    assert search(rejecting("F", "n0")).names == ["n1", "n2", "n3"]


# ---------------------------------------------------------------- the search itself


class Pattern:
    """Two filters that reject by row."""

    def __init__(self, count: int, random: Random) -> None:
        chances = [random.choice((0.0, 0.05, 0.5, 0.97)) for _ in range(2)]
        self.first, self.second = (
            np.array([random.random() < chance for _ in range(count)], np.int64) * random.choice((1, 7))
            for chance in chances
        )

    def plugins(self):
        def answers(verdicts):
            return lambda snapshot, rows: verdicts[rows] if len(rows) % 2 else verdicts[rows].copy()

        def explain(verdict):
            return unschedulable(f"verdict {verdict}")

        return table_filter("First", answers(self.first), explain), table_filter(
            "Second", answers(self.second), explain
        )

    def status(self, row: int) -> str | None:
        for name, verdicts in (("First", self.first), ("Second", self.second)):
            if verdicts[row]:
                return f"{name}: verdict {verdicts[row]}"
        return None


def naive(pattern: Pattern, order: list[int], start: int, count_max: int):
    """Node by node as upstream's only worker does it: stop at the first success too many."""
    feasible: list[int] = []
    rejections: dict[int, str] = {}
    for index in range(len(order)):
        row = order[(start + index) % len(order)]
        status = pattern.status(row)
        if status is not None:
            rejections[row] = status
        elif len(feasible) == count_max:
            break
        else:
            feasible.append(row)
    return feasible, rejections


SIZES = (1, 2, 99, 100, 127, 128, 129, 256, 257, 640)


@pytest.mark.long
@given(
    count=st.sampled_from(SIZES),
    seed=st.integers(0, 2**32),
    start=st.integers(0, 2000),
    percentage=st.sampled_from((0, 1, 20, 40, 99, 100)),
    has_scorer=st.booleans(),
)
def test_search_finds_and_rejects_what_a_walk_from_node_to_node_does(count, seed, start, percentage, has_scorer):
    pattern, snapshot = Pattern(count, Random(seed)), cluster(count)
    profile = framework(*pattern.plugins(), *([SCORER] if has_scorer else []))
    count_max = count_to_find(count, percentage) if has_scorer else 1
    # The second search begins with as many nodes as the first one needed.
    for search_start in (start, start + count // 3):
        search_result = Search(profile, snapshot, start=search_start, percentage=percentage).run()
        feasible, rejections = naive(pattern, snapshot.order.tolist(), search_start, count_max)
        assert search_result.found.rows.tolist() == feasible
        assert search_result.statuses == {snapshot.name(row): status for row, status in rejections.items()}
        assert search_result.found.examined_count == len(feasible) + len(rejections)
        assert search_result.rotation.next_start == (search_start + len(feasible) + len(rejections)) % count


@pytest.mark.parametrize("border", [126, 127, 128, 129])
def test_search_looks_for_one_success_too_many_across_chunks(border):
    """100 nodes pass, then all are rejected up to the border, then one passes that is not wanted any more."""
    verdicts = np.zeros(300, np.int64)
    verdicts[100:border] = 1
    search_result = search(
        table_filter("F", lambda snapshot, rows: verdicts[rows], lambda verdict: unschedulable("no")),
        nodes=300,
        percentage=1,
    )
    assert search_result.names == [f"n{index}" for index in range(100)]
    assert list(search_result.statuses) == [f"n{index}" for index in range(100, border)]
    assert search_result.rotation.next_start == border


def test_search_begins_with_all_nodes_where_the_last_one_for_such_a_pod_found_too_few():
    verdicts, chunks_asked = np.ones(300, np.int64), []
    judge = table_filter(
        "F",
        lambda snapshot, rows: chunks_asked.append(len(rows)) or verdicts[rows],
        lambda verdict: unschedulable("no"),
    )
    profile, snapshot = framework(judge, SCORER), cluster(300)
    for passes, chunks in ((0, [163, 137]), (0, [163, 137]), (0, [300]), (300, [300]), (300, [163])):
        verdicts[:passes] = 0
        chunks_asked.clear()
        decide(profile, pod(), snapshot)
        assert chunks_asked == chunks
    for number, chunks in enumerate(([300], [163])):
        chunks_asked.clear()
        decide(profile, pod(cpu=f"{number + 1}m"), snapshot)
        assert chunks_asked == chunks


def test_search_begins_with_as_many_nodes_as_the_last_one_for_such_a_pod_needed():
    verdicts, chunks_asked = (np.arange(600) % 10 < 3).astype(np.int64), []
    judge = table_filter(
        "F",
        lambda snapshot, rows: chunks_asked.append(len(rows)) or verdicts[rows],
        lambda verdict: unschedulable("no"),
    )
    profile, snapshot = framework(judge, SCORER), cluster(600)
    # The second pod is the first with a signature. Of 396 nodes 277 pass, one more than are needed; and an eighth.
    for chunks in ([311, 289], [311, 289], [445], [445]):
        chunks_asked.clear()
        decide(profile, pod(), snapshot)
        assert chunks_asked == chunks


def test_without_filters_the_first_nodes_from_the_start_are_taken():
    search_result = Search(framework(SCORER), cluster(300), start=250, percentage=40).run()
    assert search_result.names == [f"n{index % 300}" for index in range(250, 370)]
    assert search_result.rotation.next_start == 70


def test_searches_follow_each_other_around_the_nodes():
    rotation, starts = Rotation(), []
    profile = framework(rejecting("F", "n1"))
    for _ in range(4):
        starts.append(rotation.next_start)
        cycle = Cycle(profile, pod(), cluster(4), Nominator({}.get))
        run_unasked(find_feasible(cycle, Sampling(rotation, 0, is_one_enough=True)))
    assert starts == [0, 2, 3, 0]


def test_filters_run_in_order_and_only_on_what_is_left():
    recorder = Recorder()
    second = rejecting("Second", "n0", "n1", "n2", "n3")
    search_result = Search(framework(rejecting("First", "n0"), second, SCORER, observer=recorder), cluster(4)).run()
    assert search_result.statuses == {"n0": "First: no", "n1": "Second: no", "n2": "Second: no", "n3": "Second: no"}
    assert search_result.diagnosis.unschedulable_plugins == {"First", "Second"}
    assert recorder.evaluations["First", "Filter"] == 4
    assert recorder.evaluations["Second", "Filter"] == 3
    assert recorder.points == [("PreFilter", "Success"), ("Filter", "Unschedulable")]


# ---------------------------------------------------------------- failures


def failing(error="broken"):
    return raising(RuntimeError(error))


def one_each(snapshot, rows):
    return passing(rows) + 1


RAISED = "RuntimeError: broken"
MISPLACED = "answered {} (broken), which it may not"


@pytest.mark.parametrize(
    ("plugin", "words"),
    [
        (node_filter("Bad", failing()), RAISED),
        (node_filter("Bad", lambda name: error_status("broken") if name == "n2" else None), "broken"),
        (node_filter("Bad", lambda name: Status(Code.WAIT, ("broken",))), MISPLACED.format("Wait")),
        (table_filter("Bad", failing(), unschedulable), RAISED),
        (table_filter("Bad", one_each, failing()), RAISED),
        (table_filter("Bad", one_each, lambda verdict: error_status("broken")), "broken"),
    ],
)
def test_failing_filter_is_an_error_that_names_it(plugin, words):
    with pytest.raises(ScheduleError) as failure:
        search(plugin)
    assert str(failure.value) == f'running "Bad" filter plugin: {words}'


@pytest.mark.parametrize(
    "plugin",
    [
        node_filter("Bad", lambda name: "no"),
        table_filter("Bad", lambda snapshot, rows: np.ones(len(rows) + 1, np.int64), lambda verdict: SKIP),
        table_filter("Bad", lambda snapshot, rows: 1, lambda verdict: SKIP),
        table_filter("Bad", lambda snapshot, rows: passing(rows) + 1, lambda verdict: None),
    ],
)
def test_filter_that_answers_nonsense_is_an_error_that_names_it(plugin):
    with pytest.raises(ScheduleError, match='running "Bad" filter plugin: '):
        search(plugin)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (failing(), RAISED),
        (lambda: (None, error_status("broken")), "broken"),
        (lambda: (None, Status(Code.PENDING, ("broken",))), MISPLACED.format("Pending")),
    ],
)
def test_failing_pre_filter_is_an_error_that_names_it(answer, words):
    with pytest.raises(ScheduleError) as failure:
        search(pre_filter("Bad", answer))
    assert str(failure.value) == f'running PreFilter plugin "Bad": {words}'


@pytest.mark.parametrize("answer", [None, (None, None, None), (None, False), ("n1", None)])
def test_pre_filter_that_answers_nonsense_is_an_error_that_names_it(answer):
    with pytest.raises(ScheduleError, match='running PreFilter plugin "Bad": '):
        search(pre_filter("Bad", lambda: answer))


# ---------------------------------------------------------------- PreFilter


def only(*names: str):
    return lambda: (PreFilterResult(frozenset(names)), None)


def test_skip_leaves_out_the_plugins_own_filter():
    both_points = pre_filter("A", lambda: (None, SKIP), FilterPlugin, filter=failing())
    search_result = search(both_points, rejecting("B", "n0"))
    assert search_result.names == ["n1", "n2", "n3"]
    assert search_result.state.skipped_filters == {"A"}


ELSEWHERE = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("elsewhere",), "Narrow")


def only_rows(*rows: int):
    """A PreFilter with which the search looks at no other rows."""

    def narrow(self, state, pod, snapshot):
        state.write(OnlyRows(np.array(rows, np.intp), ELSEWHERE))
        return None, SKIP

    return type("Narrow", (Built, PreFilterPlugin), {"pre_filter": narrow})


def test_only_rows_are_searched_and_the_others_have_one_reason():
    assert search(only_rows(1, 3), rejecting("B", "n0", "n3")).names == ["n1"]
    search_result = search(only_rows(1, 3), rejecting("B", "n0", "n1", "n3"))
    assert search_result.names == []
    assert search_result.diagnosis.reasons(4) == {"elsewhere": 2, "no": 2}
    assert search_result.diagnosis.unschedulable_plugins == {"Narrow", "B"}


def test_the_number_of_nodes_to_find_goes_by_all_nodes_where_only_some_are_searched():
    search_result = search(only_rows(*range(0, 300, 2)), rejecting("B"), nodes=300, percentage=40)
    assert len(search_result.names) == 120


def test_only_rows_and_named_nodes_narrow_the_search_together():
    search_result = search(only_rows(1, 3), pre_filter("A", only("n0", "n1")), rejecting("B"))
    assert search_result.names == ["n1"]
    assert search_result.diagnosis.status(0) == ELSEWHERE


def test_a_pod_is_not_nominated_to_a_node_that_is_not_searched():
    for names, row in ((["n1", "n3"], 0), (["n3"], 3)):
        nominated_pod = pod(nominated=f"n{row}")
        assert search(only_rows(1, 3), rejecting("B"), item=nominated_pod).names == names


def test_no_row_of_only_rows_is_feasible_where_there_is_none():
    search_result = search(only_rows(), rejecting("B"))
    assert search_result.names == []
    assert search_result.diagnosis.reasons(4) == {"elsewhere": 4}


def test_all_filters_skipped_is_as_if_there_were_none():
    search_result = search(pre_filter("A", lambda: (None, SKIP), FilterPlugin, filter=failing()))
    assert search_result.names == ["n0", "n1", "n2", "n3"]
    assert search_result.rotation.next_start == 0


def test_unresolvable_pre_filter_stops_at_once_and_no_node_is_looked_at():
    search_result = search(
        pre_filter("Narrow", only("n1")),
        pre_filter("A", lambda: (None, unresolvable("hopeless"))),
        pre_filter("B", failing()),
        node_filter("F", failing()),
        start=3,
    )
    assert search_result.names == []
    assert search_result.diagnosis.absent == unresolvable("hopeless").by("A")
    assert search_result.diagnosis.pre_filter_message == "hopeless"
    # Upstream forgets the plugins that narrowed the nodes down when it stops here.
    assert search_result.diagnosis.unschedulable_plugins == {"A"}
    assert search_result.rotation.next_start == 3


def test_pod_with_too_much_to_look_at_is_turned_down_unasked():
    crowded = pod(affinity=CROWDS["node terms"](range(1_001))["affinity"])
    search_result = search(pre_filter("A", failing()), node_filter("F", failing()), item=crowded)
    assert search_result.names == []
    assert search_result.diagnosis.absent.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert "2002 demands" in search_result.diagnosis.pre_filter_message
    assert search_result.diagnosis.unschedulable_plugins == set()


def test_last_of_several_rejecting_pre_filters_is_remembered():
    names_asked = []
    search_result = search(
        pre_filter("A", lambda: (None, unschedulable("first"))),
        pre_filter("Narrow", only("n1")),
        pre_filter("B", lambda: (None, unschedulable("second"))),
        pre_filter("C", lambda: names_asked.append("C") or (None, None)),
    )
    assert search_result.names == []
    assert names_asked == ["C"]
    assert search_result.diagnosis.absent == unschedulable("second").by("B")
    assert search_result.diagnosis.unschedulable_plugins == {"B", "Narrow"}


def test_node_sets_intersect_and_the_others_get_an_absent_status():
    search_result = search(
        pre_filter("B", only("n1", "n2", "gone")),
        pre_filter("Any", lambda: (None, Status(Code.SUCCESS))),
        pre_filter("A", only("n2", "n3", "n1")),
        rejecting("F", "n2"),
        start=1,
    )
    assert search_result.names == ["n1"]
    assert search_result.statuses == {"n2": "F: no"}
    assert search_result.diagnosis.absent == unresolvable("node(s) didn't satisfy plugin(s) [A B]")
    assert search_result.diagnosis.unschedulable_plugins == {"A", "B", "F"}
    assert search_result.rotation.next_start == 3


def test_search_among_named_nodes_starts_within_them_and_moves_on_among_all():
    search_result = search(pre_filter("P", only("n0", "n2", "n5")), rejecting("F"), nodes=6, start=4)
    assert search_result.names == ["n2", "n5", "n0"]
    assert search_result.rotation.next_start == (4 + 3) % 6


def test_named_nodes_that_do_not_exist_leave_nothing():
    search_result = search(pre_filter("P", only("gone")), rejecting("F"))
    assert search_result.names == []
    assert search_result.diagnosis.pre_filter_message == ""
    assert search_result.diagnosis.reasons(4) == {"node(s) didn't satisfy plugin(s) [P]": 4}


@pytest.mark.parametrize(
    ("sets", "reason"),
    [
        ([("P", ())], "node(s) didn't satisfy plugin P"),
        ([("B", ("n1",)), ("A", ("n2",))], "node(s) didn't satisfy plugin(s) [A B] simultaneously"),
    ],
)
def test_empty_intersection_is_unresolvable(sets, reason):
    search_result = search(*(pre_filter(name, only(*names)) for name, names in sets), pre_filter("Late", failing()))
    assert search_result.diagnosis.absent == unresolvable(reason)
    assert search_result.diagnosis.pre_filter_message == reason
    assert search_result.diagnosis.unschedulable_plugins == {name for name, _ in sets}


# ---------------------------------------------------------------- nominated pods


class Fits(FilterPlugin):
    """As many pods as a node allows, counted on the snapshot."""

    def __init__(self, args, handle) -> None:
        pass

    def filter(self, state, pod, node):
        return unschedulable("Too many pods") if len(node.pods) >= node.allowed_pods else None


def test_room_kept_for_nominated_pods_is_not_given_away():
    snapshot = snapshot_of(node("n0", pods=1), node("n1", pods=2), node("n2", pods=1))
    nominations = Nominated({"n0": [pod("vip-1")], "n1": [pod("vip-2")], "gone": [pod("vip-3")]})
    search_result = search(Fits, snapshot=snapshot, nominations=nominations)
    assert search_result.names == ["n1", "n2"]
    assert search_result.statuses == {"n0": "Fits: Too many pods"}
    assert [len(snapshot.node(row).pods) for row in snapshot.order] == [0, 0, 0]


def test_node_must_fit_without_the_nominated_pods_too():
    needs_company = node_filter("Company", lambda name: None)
    needs_company.filter = lambda self, state, pod, node: None if node.pods else unschedulable("alone")
    snapshot = snapshot_of(node("n0"), node("n1"), pod("friend", node="n1"))
    nominations = Nominated({"n0": [pod("vip-1")], "n1": [pod("vip-2")]})
    search_result = search(needs_company, snapshot=snapshot, nominations=nominations)
    assert search_result.names == ["n1"]
    assert search_result.statuses == {"n0": "Company: alone"}


def test_order_of_feasible_nodes_is_kept_around_nodes_with_nominated_pods():
    search_result = search(
        rejecting("F", "n2"), nodes=6, start=4, nominations=Nominated({"n5": [pod("v")], "n1": [pod("w")]})
    )
    assert search_result.names == ["n4", "n5", "n0", "n1", "n3"]


class Added(PreFilterExtensions):
    """Notes which pods were tried out where; may answer something."""

    def __init__(self, answer=lambda: None) -> None:
        self.seen: list[tuple[str, str, int]] = []
        self._answer = answer

    def add_pod(self, state, pod, added_pod, node):
        self.seen.append((added_pod.metadata.name, node.name, len(node.pods)))
        return self._answer()

    def remove_pod(self, state, pod, removed_pod, node):
        raise AssertionError("nothing is removed here")


def test_plugins_see_nominated_pods_unless_they_skip():
    listener, skipping = Added(), Added()
    search(
        pre_filter("P", lambda: (None, None), extensions=listener),
        pre_filter("Q", lambda: (None, SKIP), extensions=skipping),
        rejecting("F"),
        nominations=Nominated({"n1": [pod("v"), pod("w")]}),
    )
    assert listener.seen == [("v", "n1", 1), ("w", "n1", 2)]
    assert skipping.seen == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [(failing(), RAISED), (lambda: error_status("broken"), "broken"), (lambda: unschedulable("broken"), "broken")],
)
def test_failing_to_add_a_nominated_pod_is_an_error_that_names_the_plugin(answer, words):
    plugin = pre_filter("P", lambda: (None, None), extensions=Added(answer))
    with pytest.raises(ScheduleError) as failure:
        search(plugin, rejecting("F"), nominations=Nominated({"n1": [pod("v")]}))
    assert str(failure.value) == f'running AddPod on PreFilter plugin "P": {words}'


def test_nominated_pod_with_a_broken_quantity_counts_as_far_as_it_can_be_read():
    snapshot = snapshot_of(node("n0", pods=1), node("n1"))
    search_result = search(Fits, snapshot=snapshot, nominations=Nominated({"n0": [pod("odd", cpu="lots")]}))
    assert search_result.names == ["n1"]


# ---------------------------------------------------------------- the node a pod is nominated to


def test_nominated_node_is_taken_without_looking_further():
    search_result = search(rejecting("F", "n0"), item=pod(nominated="n2"), start=1)
    assert search_result.names == ["n2"]
    assert search_result.found.examined_count == 1
    assert search_result.statuses == {}
    assert search_result.rotation.next_start == 1


def test_nominated_node_that_does_not_fit_is_counted_once():
    search_result = search(rejecting("F", "n1", "n2", "n3", "n0"), item=pod(nominated="n2"), start=3)
    assert search_result.names == []
    assert search_result.diagnosis.reasons(4) == {"no": 4}
    assert search_result.rotation.next_start == 3


def test_nominated_node_that_does_not_fit_stays_in_the_diagnosis_where_the_search_stops_before_it():
    search_result = Search(framework(rejecting("F", "n3")), cluster(4), item=pod(nominated="n3")).run()
    assert search_result.names == ["n0"]
    assert search_result.statuses == {"n3": "F: no"}
    assert search_result.found.examined_count == 2
    assert search_result.rotation.next_start == 2


def test_unknown_nominated_node_is_ignored():
    assert search(rejecting("F", "n0"), item=pod(nominated="gone")).names == ["n1", "n2", "n3"]


def test_error_on_the_nominated_node_is_ignored():
    flaky = [True]
    plugin = node_filter("F", lambda name: error_status("x") if flaky and flaky.pop() else None)
    assert search(plugin, item=pod(nominated="n2")).names == ["n0", "n1", "n2", "n3"]


def test_room_on_the_nominated_node_is_kept_for_others_nominated_there():
    snapshot = snapshot_of(node("n0", pods=1), node("n1", pods=1))
    nominations = Nominated({"n0": [pod("vip")]})
    search_result = search(Fits, snapshot=snapshot, item=pod(nominated="n0"), nominations=nominations)
    assert search_result.names == ["n1"]


# ---------------------------------------------------------------- closed nodes


def closed_cluster() -> Snapshot:
    """Three nodes, of which n1 has a pod whose requests cannot be read."""
    return odd_cluster(3, pod("odd", cpu="lots", node="n1"))


def odd_cluster(nodes: int, *pods: Pod) -> Snapshot:
    """So many nodes, and pods that cannot be read in full."""
    return snapshot_of(*(node(f"n{number}") for number in range(nodes)), *pods, report=lambda item, error: None)


PASSING = node_filter("F", lambda name: None)


@pytest.mark.parametrize("filters", [[], [PASSING]], ids=["no filters", "a filter"])
def test_a_closed_node_is_rejected_whatever_the_filters_say(filters) -> None:
    search = Search(framework(*filters, SCORER), closed_cluster()).run()
    assert search.names == ["n0", "n2"]
    [status] = search.diagnosis.statuses().values()
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.plugin == NODE_CLOSED
    assert status.message.startswith("node(s) closed to new pods: a pod there has a field that cannot be read, spec.")
    assert search.diagnosis.unschedulable_plugins == {NODE_CLOSED}


def test_a_pod_nominated_to_a_closed_node_looks_elsewhere() -> None:
    item = pod(nominated="n1")
    assert Search(framework(PASSING), closed_cluster(), item=item).run().names[0] != "n1"


def test_a_closed_node_that_pods_are_nominated_to_is_rejected_once() -> None:
    search = Search(
        framework(PASSING, SCORER), closed_cluster(), nominations=Nominated({"n1": [pod("other", priority=9)]})
    )
    assert search.run().names == ["n0", "n2"]
    assert search.diagnosis.rejected_count == 1


def test_the_message_names_the_fields_that_are_unreadable_unless_there_are_too_many() -> None:
    odd = [pod(f"odd-{number}", requests={f"example.com/r{number}": "x"}, node=f"n{number}") for number in range(11)]
    few_result = Search(framework(PASSING), odd_cluster(3, *odd[:3])).run()
    assert (
        "1 node(s) closed to new pods: a pod there has a field that cannot be read, spec."
        in FitError(3, few_result.diagnosis).message
    )
    many_result = Search(framework(PASSING), odd_cluster(11, *odd)).run()
    assert FitError(11, many_result.diagnosis).message == (
        "0/11 nodes are available: 11 node(s) closed to new pods: what is there cannot be read."
    )
