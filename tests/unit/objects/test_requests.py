import pytest

from podium.cluster import pod_usage, pod_usage_in
from podium.config import RELEASES
from podium.objects.core import (
    Container,
    ContainerStatus,
    Node,
    NodeStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from podium.objects.errors import FieldError
from podium.objects.meta import RawQuantity
from podium.objects.requests import (
    DEFAULT_MEMORY_BYTES,
    REQUESTS_MAX,
    filter_requests,
    node_allocatable,
    nonzero_requests_on_node,
    pod_requests,
    pod_requests_with_status,
    requests_on_node,
    scoring_requests,
    whole_amounts,
)


def container(name: str = "c", *, sidecar: bool = False, **requests: RawQuantity) -> Container:
    return Container(
        name=name,
        resources=ResourceRequirements(requests=requests),
        restart_policy="Always" if sidecar else None,
    )


def spec(
    *containers: Container, init: tuple[Container, ...] = (), pod_level: dict[str, RawQuantity] | None = None
) -> PodSpec:
    resources = None if pod_level is None else ResourceRequirements(requests=pod_level)
    return Pod(spec=PodSpec(containers=containers, init_containers=init, resources=resources)).spec


def resized_pod(
    pod_spec: PodSpec, requests: dict[str, RawQuantity], allocation: dict[str, RawQuantity], reason: str = ""
) -> Pod:
    status = ContainerStatus(
        name="c", resources=ResourceRequirements(requests=requests), allocated_resources=allocation
    )
    conditions = (PodCondition(type="PodResizePending", reason=reason),) if reason else ()
    return Pod(spec=pod_spec, status=PodStatus(container_statuses=(status,), conditions=conditions))


def test_containers_add_up() -> None:
    pod = spec(container(cpu="100m", memory="1Gi"), container(cpu=1, memory="1Mi"))
    assert pod_requests(pod) == {"cpu": 1100, "memory": 1025 * 2**20}


def test_a_sum_is_rounded_up_only_once() -> None:
    pod = spec(container(cpu="0.4m", memory="0.5"), container(cpu="0.4m", memory="0.5"))
    assert pod_requests(pod) == {"cpu": 1, "memory": 1}


def test_a_resource_listed_with_zero_stays_listed() -> None:
    assert pod_requests(spec(container(cpu="0"))) == {"cpu": 0}
    assert pod_requests(spec(container())) == {}


@pytest.mark.parametrize(
    ("init", "cpu"),
    [
        ((container(cpu="3"),), 3000),
        ((container(cpu="1"), container(cpu="1")), 2000),
        ((container(cpu="1", sidecar=True),), 3000),
        ((container(cpu="1", sidecar=True), container(cpu="3")), 4000),
        ((container(cpu="3"), container(cpu="1", sidecar=True)), 3000),
        ((container(cpu="2", sidecar=True), container(cpu="1"), container(cpu="1", sidecar=True)), 5000),
    ],
)
def test_init_containers_and_sidecars(init: tuple[Container, ...], cpu: int) -> None:
    assert pod_requests(spec(container(cpu="2"), init=init)) == {"cpu": cpu}


def test_pod_level_requests_replace_what_they_list_and_may() -> None:
    app = Container(resources=ResourceRequirements(requests={"cpu": "2", "memory": "1Gi", "example.com/gpu": 1}))
    pod = spec(app, pod_level={"cpu": "1", "example.com/gpu": 9})
    assert pod_requests(pod) == {"cpu": 1000, "memory": 2**30, "example.com/gpu": 1}


def test_overhead_comes_on_top_even_of_pod_level_requests() -> None:
    pod = PodSpec(
        containers=(container(cpu="2"),),
        resources=ResourceRequirements(requests={"cpu": "1"}),
        overhead={"cpu": "250m", "memory": "1Ki"},
    )
    assert pod_requests(Pod(spec=pod).spec) == {"cpu": 1250, "memory": 1024}
    assert scoring_requests(Pod(spec=pod).spec) == {"cpu": 2250, "memory": DEFAULT_MEMORY_BYTES + 1024}


def test_the_filter_counts_scalars_and_never_less_than_nothing() -> None:
    requests: dict[str, RawQuantity] = {"cpu": "-1", "example.com/gpu": 2, "storage": "1Gi", "hugepages-2Mi": "4Mi"}
    pod = spec(Container(resources=ResourceRequirements(requests=requests)))
    assert filter_requests(pod) == {"cpu": 0, "example.com/gpu": 2, "hugepages-2Mi": 4 * 2**20}
    assert pod_requests(pod)["storage"] == 2**30
    assert requests_on_node(Pod(spec=pod))["cpu"] == -1000


def test_scoring_gives_each_container_a_default_and_ignores_pod_level() -> None:
    pod = spec(container(cpu="1"), container(memory="0"), init=(container(),), pod_level={"cpu": "9", "memory": "9"})
    assert scoring_requests(pod) == {"cpu": 1100, "memory": DEFAULT_MEMORY_BYTES}


def test_nonzero_requests_fill_each_container() -> None:
    pod = Pod(spec=spec(container(cpu="1"), container()))
    assert nonzero_requests_on_node(pod) == (1100, 2 * DEFAULT_MEMORY_BYTES)
    assert requests_on_node(pod) == {"cpu": 1000}


def test_nonzero_requests_with_pod_level_fill_only_what_the_whole_pod_lacks() -> None:
    pod = Pod(spec=spec(container(cpu="1"), container(), pod_level={"cpu": "3"}))
    assert nonzero_requests_on_node(pod) == (3000, 2 * DEFAULT_MEMORY_BYTES)
    full = Pod(spec=spec(container(memory="1Ki"), container(), pod_level={"cpu": "3"}))
    assert nonzero_requests_on_node(full) == (3000, 1024)


def test_a_pod_being_resized_holds_the_most_of_what_it_asks_has_and_was_given() -> None:
    pod = resized_pod(spec(container(cpu="1", memory="1Gi")), {"cpu": "2"}, {"cpu": "1500m", "memory": "2Gi"})
    assert pod_requests_with_status(pod) == {"cpu": 2000, "memory": 2 * 2**30}
    assert requests_on_node(pod) == {"cpu": 2000, "memory": 2 * 2**30}
    assert nonzero_requests_on_node(pod) == (2000, 2 * 2**30)
    assert filter_requests(pod.spec) == {"cpu": 1000, "memory": 2**30}


def test_an_infeasible_resize_does_not_count_what_is_asked() -> None:
    pod = resized_pod(spec(container(cpu="8")), {"cpu": "2"}, {"cpu": "1"}, reason="Infeasible")
    assert requests_on_node(pod) == {"cpu": 2000}
    deferred = resized_pod(spec(container(cpu="8")), {"cpu": "2"}, {"cpu": "1"}, reason="Deferred")
    assert requests_on_node(deferred) == {"cpu": 8000}


def test_a_status_that_repeats_the_spec_changes_nothing() -> None:
    pod = resized_pod(spec(container(cpu="1")), {"cpu": "1"}, {"cpu": "1"})
    assert requests_on_node(pod) is requests_on_node(Pod(spec=pod.spec))


def test_the_totals_of_a_resized_pod_are_compared_not_the_amounts_of_each_container() -> None:
    status = PodStatus(
        container_statuses=(
            ContainerStatus(name="a", resources=ResourceRequirements(requests={"cpu": "2"})),
            ContainerStatus(name="b", resources=ResourceRequirements(requests={"cpu": "1"})),
        )
    )
    pod = Pod(spec=spec(container("a", cpu="1"), container("b", cpu="2")), status=status)
    assert requests_on_node(pod) == {"cpu": 3000}
    assert requests_on_node(pod, by_container=True) == {"cpu": 4000}
    assert nonzero_requests_on_node(pod) == (3000, 2 * DEFAULT_MEMORY_BYTES)
    assert nonzero_requests_on_node(pod, by_container=True) == (4000, 2 * DEFAULT_MEMORY_BYTES)
    assert pod_usage(pod).requests == {"cpu": 3000}
    assert pod_usage_in(RELEASES["1.36"])(pod).requests == {"cpu": 4000}


def test_a_promise_counts_without_an_amount_that_the_container_has() -> None:
    status = PodStatus(container_statuses=(ContainerStatus(name="app", allocated_resources={"cpu": "3"}),))
    pod = Pod(spec=spec(container("app", cpu="1")), status=status)
    assert requests_on_node(pod) == {"cpu": 3000}
    assert requests_on_node(pod, by_container=True) == {"cpu": 1000}


def test_what_an_infeasible_resize_asks_for_counts_nowhere() -> None:
    status = PodStatus(
        container_statuses=(ContainerStatus(name="a", resources=ResourceRequirements(requests={"cpu": "2"})),),
        conditions=(PodCondition(type="PodResizePending", reason="Infeasible"),),
    )
    pod = Pod(spec=spec(container("a", cpu="8"), container("b", cpu="1")), status=status)
    assert requests_on_node(pod) == {"cpu": 2000}
    assert requests_on_node(pod, by_container=True) == {"cpu": 3000}


def test_amounts_of_the_whole_pod_replace_those_of_containers_in_its_status() -> None:
    status = PodStatus(
        container_statuses=(ContainerStatus(name="a", allocated_resources={"cpu": "7"}),),
        resources=ResourceRequirements(requests={"cpu": "2"}),
        allocated_resources={"cpu": "3"},
    )
    pod = Pod(spec=spec(container("a", cpu="1")), status=status)
    assert requests_on_node(pod) == {"cpu": 3000}


def test_in_older_releases_the_status_of_init_containers_counts_only_for_sidecars() -> None:
    given_resources = ResourceRequirements(requests={"cpu": "4"})
    pod = Pod(
        spec=spec(init=(container("side", cpu="1", sidecar=True), container("once", cpu="1"))),
        status=PodStatus(
            init_container_statuses=(
                ContainerStatus(name="side", resources=given_resources),
                ContainerStatus(name="once", resources=given_resources),
            )
        ),
    )
    assert requests_on_node(pod) == {"cpu": 8000}
    assert requests_on_node(pod, by_container=True) == {"cpu": 5000}


def test_pod_level_resize_holds_the_most_too() -> None:
    pod_spec = spec(container(cpu="1"), pod_level={"cpu": "2", "memory": "1Ki"})
    status = PodStatus(resources=ResourceRequirements(requests={"cpu": "3"}), allocated_resources={"cpu": "2500m"})
    assert requests_on_node(Pod(spec=pod_spec, status=status)) == {"cpu": 3000, "memory": 1024}
    infeasible = PodStatus(
        resources=status.resources, conditions=(PodCondition(type="PodResizePending", reason="Infeasible"),)
    )
    assert requests_on_node(Pod(spec=pod_spec, status=infeasible)) == {"cpu": 3000}
    assert requests_on_node(Pod(spec=pod_spec, status=infeasible), by_container=True) == {"cpu": 3000, "memory": 0}


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        (PodSpec(containers=(container(), container(cpu="x"))), "spec.containers[1].resources.requests[cpu]"),
        (PodSpec(init_containers=(container(memory="1 Gi"),)), "spec.initContainers[0].resources.requests[memory]"),
        (PodSpec(overhead={"cpu": ""}), "spec.overhead[cpu]"),
        (PodSpec(resources=ResourceRequirements(requests={"cpu": "1K"})), "spec.resources.requests[cpu]"),
    ],
)
def test_a_broken_quantity_names_its_field_every_time(pod: PodSpec, path: str) -> None:
    for _ in range(2):
        with pytest.raises(FieldError) as caught:
            pod_requests(Pod(spec=pod).spec)
        assert caught.value.path == path


@pytest.mark.parametrize("field", ["containers", "overhead", "resources"])
def test_more_requests_than_can_be_counted_in_time_are_refused_wherever_they_are(field: str) -> None:
    requests: dict[str, RawQuantity] = {f"example.com/r{number}": "1" for number in range(REQUESTS_MAX + 1)}
    resources = ResourceRequirements(requests=requests)
    specs = {
        "containers": PodSpec(containers=(Container(name="c", resources=resources),)),
        "overhead": PodSpec(overhead=requests),
        "resources": PodSpec(resources=resources),
    }
    with pytest.raises(FieldError, match=f"{REQUESTS_MAX + 1} requests, at most {REQUESTS_MAX} are counted"):
        pod_requests(specs[field])


def test_a_broken_status_names_its_field() -> None:
    with pytest.raises(FieldError) as caught:
        requests_on_node(resized_pod(spec(container(cpu="1")), {"cpu": "1"}, {"cpu": "?"}))
    assert caught.value.path == "status.containerStatuses[0].allocatedResources[cpu]"


def test_allocatable_is_counted_resources_and_a_number_of_pods() -> None:
    allocatable: dict[str, RawQuantity] = {
        "cpu": "3920m",
        "memory": "16Gi",
        "pods": "110",
        "example.com/gpu": 4,
        "x": 1,
    }
    node = Node(status=NodeStatus(allocatable=allocatable))
    assert node_allocatable(node) == ({"cpu": 3920, "memory": 16 * 2**30, "example.com/gpu": 4}, 110)
    assert node_allocatable(Node()) == ({}, 0)


def test_a_broken_allocatable_names_its_field() -> None:
    with pytest.raises(FieldError, match=r'^status\.allocatable\[memory\]: "16GB" has the unknown suffix "GB"$'):
        node_allocatable(Node(status=NodeStatus(allocatable={"memory": "16GB"})))


def test_amounts_of_any_resource_become_whole_numbers() -> None:
    assert whole_amounts({"cpu": "0.1001", "memory": "1Ki", "pods": 16}, "resources") == {
        "cpu": 101,
        "memory": 1024,
        "pods": 16,
    }
    with pytest.raises(FieldError, match=r"resources\[cpu\]: "):
        whole_amounts({"cpu": "much"}, "resources")
