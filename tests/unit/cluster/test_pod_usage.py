from __future__ import annotations

import pytest

from podium.cluster.pod_usage import (
    HostPort,
    host_ports,
    pod_usage,
    pod_usage_without_requests,
    readable_pod_usage,
)
from podium.objects.errors import FieldError
from tests.builders import pod


def test_pod_usage_holds_requests_defaults_and_ports():
    usage = pod_usage(pod(cpu="250m", requests={"example.com/gpu": 2}, host_ports=[80]))
    assert usage.requests == {"cpu": 250, "example.com/gpu": 2}
    assert (usage.nonzero_cpu_milli, usage.nonzero_memory_bytes) == (250, 200 * 1024**2)
    assert usage.host_ports == (HostPort("0.0.0.0", "TCP", 80),)


def test_replicas_share_one_pod_usage():
    assert pod_usage(pod("web-1", cpu="1")) is pod_usage(pod("web-2", cpu="1"))


def test_pod_resized_in_place_holds_the_greater_of_old_and_new():
    status = {"containerStatuses": [{"name": "app", "resources": {"requests": {"cpu": "2"}}}]}
    assert pod_usage(pod(cpu="1", status=status)).requests == {"cpu": 2000}
    assert pod_usage(pod(cpu="1")).requests == {"cpu": 1000}


def test_only_ports_of_app_containers_and_sidecars_with_a_host_port_count():
    item = pod(
        host_ports=[{"containerPort": 1}, {"hostPort": 80, "hostIP": "10.0.0.1", "protocol": "UDP"}],
        spec={
            "initContainers": [
                {"name": "setup", "ports": [{"hostPort": 81}]},
                {"name": "mesh", "restartPolicy": "Always", "ports": [{"hostPort": 82}]},
            ]
        },
    )
    assert host_ports(item.spec) == (HostPort("10.0.0.1", "UDP", 80), HostPort("0.0.0.0", "TCP", 82))


def test_broken_quantity_names_its_field_and_leaves_the_ports():
    item = pod(cpu="lots", host_ports=[80])
    with pytest.raises(FieldError) as error:
        pod_usage(item)
    assert error.value.path == "spec.containers[0].resources.requests[cpu]"
    readable_usage = pod_usage_without_requests(item)
    assert readable_pod_usage(item) == readable_usage
    assert readable_usage.requests == {}
    assert readable_usage.host_ports == (HostPort("0.0.0.0", "TCP", 80),)
