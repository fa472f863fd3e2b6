"""The pod that a file is about: a pod in it, or one made from the pod template of a workload in it.

Source: the kinds with a pod template under apps/v1 and batch/v1; any other kind with `spec.template` counts, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from podium.engine.errors import ManifestError
from podium.engine.files import Found
from podium.engine.manifests import Manifest

REPLICAS_MAX: Final = 100_000
"""How many pods of one workload a question may be about."""


def asked_pod(found: Sequence[Found], name: str) -> tuple[Found, list[Found]]:
    """The pod that a file asks about, unbound, and the other objects of the file.

    Args:
        name: what to call the file.

    Raises:
        ManifestError: the file holds no pod and no workload, or more than one.
    """
    asked = [(each, template) for each in found if (template := template_of(each.manifest)) is not None]
    if len(asked) != 1:
        kinds = ", ".join(dict.fromkeys(str(each.manifest["kind"]) for each in found)) or "nothing"
        raise ManifestError(
            f"{name}: expected one pod or workload with a pod template, found {len(asked)}: the file holds {kinds}"
        )
    ((workload, template),) = asked
    others = [each for each in found if each is not workload]
    if template is workload.manifest:
        return workload, others
    return Found(pod_like(workload.manifest, template), workload.where), others


def template_of(manifest: Manifest) -> Mapping[str, Any] | None:
    """The pod template of an object: a pod itself, or a workload's template; None for other objects."""
    if manifest.get("kind") == "Pod":
        return manifest
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return None
    for way in (("template",), ("jobTemplate", "spec", "template")):
        below: Any = spec
        for name in way:
            below = below.get(name) if isinstance(below, dict) else None
        if isinstance(below, dict):
            return below
    return None


def replicas_of(workload: Found, default: int) -> int:
    """How many pods the workload asks for; `default` if it does not say.

    Raises:
        ManifestError: it is not a number, or one that no cluster has.
    """
    kind, spec = workload.manifest.get("kind"), workload.manifest.get("spec")
    name = "parallelism" if kind in ("Job", "CronJob") else "replicas"
    for way in ("jobTemplate", "spec") if kind == "CronJob" else ():
        spec = spec.get(way) if isinstance(spec, dict) else None
    count = spec.get(name) if isinstance(spec, dict) else None
    if count is None:
        return default
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= REPLICAS_MAX:
        raise ManifestError(f"{workload.where}: spec.{name}: {count!r} is not a number of pods up to {REPLICAS_MAX:,}")
    return count


def pod_like(workload: Manifest, template: Mapping[str, Any]) -> Manifest:
    """A pod of the workload's name and namespace, with the labels, annotations and spec of its template."""
    of_workload, of_template = workload.get("metadata"), template.get("metadata")
    own = of_workload if isinstance(of_workload, dict) else {}
    made = of_template if isinstance(of_template, dict) else {}
    metadata = {name: own[name] for name in ("name", "namespace") if name in own}
    metadata |= {name: made[name] for name in ("labels", "annotations") if name in made}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}
