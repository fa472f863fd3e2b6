"""Asks the estimator servers of many members at once, under one deadline.

Source: karmada pkg/estimator/client/accurate.go, v1.18.
Differs: a member that fails is answered with -1, and the others count; upstream then drops all answers. An answer
that is neither a number of replicas nor -1 is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import anyio
import grpc
import grpc.aio

from podium.estimator.client.channels import ClientTls, NoAnswerError, error_of, status_of
from podium.estimator.client.connections import Connections, open_connections
from podium.estimator.client.requests import replicas_request, sets_request
from podium.estimator.division.bindings import BindingSpec
from podium.estimator.merge import NO_ANSWER
from podium.estimator.server.messages import MessageError, read_count
from podium.estimator.server.service import SERVICE


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
    addresses: Mapping[str, Sequence[str]],
    spec: BindingSpec,
    tls: ClientTls | None,
    timeout_s: float,
    *,
    in_sets: bool = False,
) -> ServerAnswers:
    """Connect to every server, and ask it how many replicas of the workload fit into its member.

    Args:
        addresses: `host:port` by cluster, in the order in which they are tried.
        tls: None for plain text.
        timeout_s: for everything, connections included.
        in_sets: ask for sets of the workload's components.
    """
    dial_s = timeout_s / max(map(len, addresses.values()), default=1)
    async with open_connections(tls, dial_s) as connections:
        connections.follow(addresses)
        return await ask_members(connections, addresses, spec, timeout_s, in_sets=in_sets)


async def ask_members(
    connections: Connections, clusters: Iterable[str], spec: BindingSpec, timeout_s: float, *, in_sets: bool = False
) -> ServerAnswers:
    """Ask the servers of these members at once, over the connections that are kept.

    Args:
        timeout_s: for all of them.
        in_sets: ask for sets of the workload's components.
    """
    answers: dict[str, int] = dict.fromkeys(clusters, NO_ANSWER)
    errors: dict[str, str] = dict.fromkeys(answers, f"no answer within {timeout_s:g} s")
    deadline_s = anyio.current_time() + timeout_s

    async def ask(cluster: str) -> None:
        try:
            async with connections.channel(cluster) as channel:
                left_s = deadline_s - anyio.current_time()
                answers[cluster] = await _ask(cluster, channel, spec, left_s, in_sets=in_sets)
            del errors[cluster]
        except NoAnswerError as error:
            # After the deadline the error only says in other words that it is over.
            if anyio.current_time() < deadline_s:
                errors[cluster] = str(error)
        except MessageError as error:
            errors[cluster] = f"the answer cannot be read: {error}"

    with anyio.move_on_after(timeout_s):
        async with anyio.create_task_group() as group:
            for name in answers:
                group.start_soon(ask, name)
    return ServerAnswers(answers, errors)


async def _ask(cluster: str, channel: grpc.aio.Channel, spec: BindingSpec, timeout_s: float, *, in_sets: bool) -> int:
    question = "MaxAvailableComponentSets" if in_sets else "MaxAvailableReplicas"
    if in_sets:
        request = sets_request(cluster, spec.components, spec.resource.namespace)
    else:
        request = replicas_request(cluster, spec.replica_requirements)
    resource = spec.resource
    metadata = (("object", f"kind={resource.kind}, name={resource.namespace}/{resource.name}"),)
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{SERVICE}/{question}")
    count = read_count(await _content_of(method(request, timeout=timeout_s, metadata=metadata)))
    if count < NO_ANSWER:
        raise MessageError(f"{count} replicas")
    return count


async def _content_of(call: grpc.aio.UnaryUnaryCall[bytes, bytes]) -> bytes:
    """Return the answer to a call.

    Raises:
        NoAnswerError: the call failed.
    """
    code, details = await status_of(call)
    if code is not grpc.StatusCode.OK:
        raise NoAnswerError(error_of(code, details))
    return await call
