"""Encodes and decodes the protobuf messages of podium's own gRPC service; `fleets.proto` shows them to clients."""

from __future__ import annotations

import math
from typing import Final

from google.protobuf.message import DecodeError

from podium.estimator.server.message_classes import Messages, message_classes
from podium.fleets.answers import FleetFit

PACKAGE: Final = "podium.fleets.v1"
SERVICE: Final = f"{PACKAGE}.Fleets"
METHOD: Final = "Fit"

MESSAGES: Final[Messages] = {
    "FitRequest": {
        "workload": (1, "bytes"),
        "order": (2, "string"),
        "most": (3, "int32"),
        "clusters": (4, "*string"),
    },
    "Number": {"value": (1, "double")},
    "FittingCluster": {
        "cluster": (1, "string"),
        "load": (2, "Number"),
        "price": (3, "Number"),
        "nodes": (4, "<string>"),
        "staleSeconds": (5, "Number"),
    },
    "RejectedCluster": {
        "cluster": (1, "string"),
        "reason": (2, "string"),
        "pod": (3, "string"),
        "placed": (4, "int32"),
        "staleSeconds": (5, "Number"),
    },
    "FitResponse": {
        "workload": (1, "string"),
        "pods": (2, "int32"),
        "order": (3, "string"),
        "best": (4, "string"),
        "fits": (5, "*FittingCluster"),
        "rejected": (6, "*RejectedCluster"),
        "without": (7, "<string>"),
        "untried": (8, "*string"),
    },
}

CLASSES: Final = message_classes("fleets.proto", PACKAGE, MESSAGES)


class RequestError(Exception):
    """The bytes are not a valid request."""


def read_fit_request(content: bytes) -> tuple[bytes, dict[str, str]]:
    """Return the workload's text, and the options as in the query of the HTTP interface.

    Raises:
        RequestError: the request cannot be read.
    """
    try:
        message = CLASSES["FitRequest"].FromString(content)
    except DecodeError as error:
        raise RequestError(f"FitRequest: {error}") from error
    options = {"order": message.order, "most": str(message.most or ""), "clusters": ",".join(message.clusters)}
    return message.workload, {name: value for name, value in options.items() if value}


def fit_response(answer: FleetFit) -> bytes:
    """Encode the answer."""
    message = CLASSES["FitResponse"](
        workload=answer.workload,
        pods=answer.pods,
        order=answer.order.value,
        best=answer.best or "",
        without=dict(answer.without),
        untried=list(answer.untried),
    )
    for cluster in answer.fits:
        fitting = message.fits.add(cluster=cluster.cluster, nodes=dict(cluster.nodes))
        _set(fitting, "load", cluster.load)
        _set(fitting, "price", cluster.price)
        _set(fitting, "staleSeconds", cluster.stale_s)
    for rejection in answer.rejections:
        fields = {"cluster": rejection.cluster, "reason": rejection.reason, "pod": rejection.pod}
        _set(message.rejected.add(placed=rejection.placed_count, **fields), "staleSeconds", rejection.stale_s)
    content: bytes = message.SerializeToString()
    return content


def _set(message: object, field: str, value: float | None) -> None:
    """Set a number, unless it is not known."""
    if value is not None and math.isfinite(value):
        getattr(message, field).value = value


def proto_text() -> str:
    """Return the service as the text of a .proto file, for clients."""
    lines = ['syntax = "proto3";', "", f"package {PACKAGE};", ""]
    lines += [f"service {SERVICE.rpartition('.')[2]} {{", f"  rpc {METHOD}(FitRequest) returns (FitResponse);", "}"]
    for name, fields in MESSAGES.items():
        lines += ["", f"message {name} {{"]
        lines += [f"  {_kind(kind)} {field} = {number};" for field, (number, kind) in fields.items()]
        lines.append("}")
    return "\n".join(lines) + "\n"


def _kind(kind: str) -> str:
    if kind.startswith("<"):
        return f"map<string, {kind.strip('<>')}>"
    return f"repeated {kind[1:]}" if kind.startswith("*") else kind
