"""Asks the estimator servers of many members at once, under one deadline.

Source: karmada pkg/estimator/client/accurate.go and pkg/util/grpcconnection/config.go, v1.18.
Differs: a member that fails is answered with -1, and the others count; upstream then drops all answers. An answer
that is neither a number of replicas nor -1 is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio
import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from podium.estimator.client.requests import replicas_request, sets_request
from podium.estimator.division.bindings import BindingSpec
from podium.estimator.merge import NO_ANSWER
from podium.estimator.server.messages import CLASSES
from podium.estimator.server.service import SERVICE
from podium.lib.error_text import cut

_GRACE_S: Final = 0.5
_RECEIVED_BYTES_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class ClientTls:
    """The PEM contents for connections with TLS. With a certificate and a key the client proves its own identity."""

    ca: bytes
    certificate: bytes | None = None
    key: bytes | None = None


@dataclass(frozen=True, slots=True)
class ServerAnswers:
    """The answers of the members' servers.

    Attributes:
        replicas: by cluster; -1 for one that could not be asked.
        errors: by cluster, why it could not be asked.
    """

    replicas: Mapping[str, int]
    errors: Mapping[str, str]


async def ask_servers(
    addresses: Mapping[str, str], spec: BindingSpec, tls: ClientTls | None, timeout_s: float, *, in_sets: bool = False
) -> ServerAnswers:
    """Ask every server how many replicas of the workload fit into its member.

    Args:
        addresses: `host:port` by cluster.
        tls: None for plain text.
        timeout_s: for everything, connections included.
        in_sets: ask for sets of the workload's components.
    """
    answers: dict[str, int] = dict.fromkeys(addresses, NO_ANSWER)
    errors: dict[str, str] = dict.fromkeys(addresses, f"no answer within {timeout_s:g} s")
    call = partial(_ask, spec=spec, timeout_s=timeout_s, in_sets=in_sets)

    async def ask(cluster: str, channel: grpc.aio.Channel) -> None:
        try:
            answers[cluster] = await call(cluster, channel)
            del errors[cluster]
        except grpc.aio.AioRpcError as error:
            errors[cluster] = cut(f"{error.code().name}: {error.details()}")
        except (DecodeError, ValueError) as error:
            errors[cluster] = f"the answer cannot be read: {error}"

    async with AsyncExitStack() as stack:
        channels = {
            name: await stack.enter_async_context(_channel(address, tls)) for name, address in addresses.items()
        }
        # gRPC ends each call at the deadline; this ends them if its core does not.
        with anyio.move_on_after(timeout_s + _GRACE_S):
            async with anyio.create_task_group() as group:
                for name, channel in channels.items():
                    group.start_soon(ask, name, channel)
    return ServerAnswers(answers, errors)


def _channel(address: str, tls: ClientTls | None) -> grpc.aio.Channel:
    options = [("grpc.max_receive_message_length", _RECEIVED_BYTES_MAX), ("grpc.enable_http_proxy", 0)]
    if tls is None:
        return grpc.aio.insecure_channel(address, options=options)
    credentials = grpc.ssl_channel_credentials(tls.ca, tls.key, tls.certificate)
    return grpc.aio.secure_channel(address, credentials, options=options)


async def _ask(cluster: str, channel: grpc.aio.Channel, *, spec: BindingSpec, timeout_s: float, in_sets: bool) -> int:
    question = "MaxAvailableComponentSets" if in_sets else "MaxAvailableReplicas"
    if in_sets:
        request = sets_request(cluster, spec.components, spec.resource.namespace)
    else:
        request = replicas_request(cluster, spec.replica_requirements)
    resource = spec.resource
    metadata = (("object", f"kind={resource.kind}, name={resource.namespace}/{resource.name}"),)
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{SERVICE}/{question}")
    content = await call(request, timeout=timeout_s, metadata=metadata)
    response = CLASSES[f"{question}Response"].FromString(content)
    count = int(response.maxSets if in_sets else response.maxReplicas)
    if count < NO_ANSWER:
        raise ValueError(f"{count} replicas")
    return count
