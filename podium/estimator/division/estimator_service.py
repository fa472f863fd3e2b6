"""The addresses at which a member's estimator server may be reached.

Source: karmada pkg/estimator/client/service.go, v1.18.
"""

from __future__ import annotations

from podium.estimator.errors import EstimateError
from podium.objects.meta import NamespacedObject, Value


class ServicePort(Value, frozen=True):
    """A port of a Service."""

    port: int = 0
    target_port: int | str = 0


class ServiceSpec(Value, frozen=True):
    """A Service's desired state."""

    type: str = ""
    external_name: str = ""
    ports: tuple[ServicePort, ...] = ()


class EstimatorService(NamespacedObject, frozen=True, tag="Service"):
    """The Service of a member's estimator, in Karmada's API server."""

    spec: ServiceSpec = ServiceSpec()


def service_name(prefix: str, cluster: str) -> str:
    """Return the name of the Service of a member's estimator."""
    return f"{prefix}-{cluster}"


def addresses_of(service: EstimatorService | None, prefix: str, cluster: str, namespace: str, port: int) -> list[str]:
    """Return the addresses, in the order in which they are tried.

    Args:
        service: None where Karmada's API server has none, as is usual if Karmada runs in a cluster.
        port: of the estimator, as in `--scheduler-estimator-port`.

    Raises:
        EstimateError: the Service leads nowhere.
    """
    name = service_name(prefix, cluster)
    if service is None:
        return [f"{name}.{namespace}.svc.cluster.local:{port}", f"{name}.{namespace}.svc:{port}"]
    if service.spec.type != "ExternalName":
        raise EstimateError(f'unsupported service type "{service.spec.type}"')
    service_port = next((item for item in service.spec.ports if item.port == port), None)
    if service_port is None:
        raise EstimateError(f'no service port {port} found for service "{service.metadata.name}"')
    target = service_port.target_port
    if isinstance(target, str):
        # Upstream prints the structure that holds the port: its type, number and name.
        raise EstimateError(
            f"ExternalName service type should have int target port, current target port: {{1 0 {target}}}"
        )
    host = service.spec.external_name
    return [f"[{host}]:{target}" if ":" in host else f"{host}:{target}"]
