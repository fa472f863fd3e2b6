"""Workloads for the tests of the library."""

from functools import partial

from tests.manifests import pod

web = partial(pod, scheduler="default-scheduler")


def deployment(name="web", replicas=3, cpu="1", namespace="default"):
    template = {"metadata": {"labels": {"app": name}}, "spec": web(name, cpu)["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }
