"""Opens gRPC channels to estimator servers, and waits until they are connected.

Source: karmada pkg/util/grpcconnection/config.go, v1.18.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import anyio
import grpc
import grpc.aio

from podium.estimator.client.unverified import presented_certificate
from podium.lib.error_text import UserFacingError, cut, error_text

_RECEIVED_BYTES_MAX: Final = 4096
_REASON_S_MAX: Final = 1.0
_OPTIONS: Final[tuple[tuple[str, int | str], ...]] = (
    ("grpc.max_receive_message_length", _RECEIVED_BYTES_MAX),
    ("grpc.enable_http_proxy", 0),
    # Otherwise a new channel inherits the back-off of an earlier one to the same address.
    ("grpc.use_local_subchannel_pool", 1),
)


@dataclass(frozen=True, slots=True)
class ClientTls:
    """The PEM contents for connections with TLS. With a certificate and a key the client proves its own identity.

    `ca`: None trusts whatever certificate a server presents.
    """

    ca: bytes | None
    certificate: bytes | None = None
    key: bytes | None = None


class NoAnswerError(UserFacingError):
    """A member's server cannot be reached, or a call to it failed."""


async def connected_channel(target: str, tls: ClientTls | None, timeout_s: float) -> grpc.aio.Channel:
    """Open a channel and wait until it is connected. Without `tls` it uses plain text.

    Raises:
        NoAnswerError: it cannot be connected.
    """
    try:
        with anyio.fail_after(timeout_s):
            channel = await _open(target, tls)
            try:
                await _wait_connected(channel)
            except BaseException:
                await close(channel)
                raise
            return channel
    except TimeoutError:
        raise NoAnswerError(f"no connection within {timeout_s:g} s") from None
    except (OSError, ValueError) as error:
        raise NoAnswerError(error_text(error)) from error


async def _open(target: str, tls: ClientTls | None) -> grpc.aio.Channel:
    if tls is None:
        return grpc.aio.insecure_channel(target, options=_OPTIONS)
    ca, options = tls.ca, list(_OPTIONS)
    if ca is None:
        certificate = await presented_certificate(target)
        ca = certificate.pem
        options.append(("grpc.ssl_target_name_override", certificate.host))
    credentials = grpc.ssl_channel_credentials(ca, tls.key, tls.certificate)
    return grpc.aio.secure_channel(target, credentials, options=options)


async def _wait_connected(channel: grpc.aio.Channel) -> None:
    while (state := channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
        if state in (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN):
            raise NoAnswerError(await failure_of(channel))
        await channel.wait_for_state_change(state)


async def close(channel: grpc.aio.Channel, grace_s: float = 0.0) -> None:
    """Close the channel, even if the task is cancelled. Calls that run may still end within `grace_s`."""
    try:
        await channel.close(grace_s)
    finally:
        with anyio.CancelScope(shield=True):
            await channel.close()


async def failure_of(channel: grpc.aio.Channel) -> str:
    """Return why the channel could not connect. Only a call is given the reason; this one reaches no server."""
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/podium/Reason")
    return error_of(*await status_of(method(b"", timeout=_REASON_S_MAX)))


async def status_of(call: grpc.aio.UnaryUnaryCall[bytes, bytes]) -> tuple[grpc.StatusCode, str | None]:
    """Return the code and the details with which the call has ended. If the task is cancelled, so is the call.

    Awaiting a call itself would raise a CancelledError that is no cancel scope's own, if the task is cancelled or the
    channel closed. It would end the other tasks of the group, and nothing would tell.
    """
    try:
        return await call.code(), await call.details()
    except BaseException:
        call.cancel()
        raise


def error_of(code: grpc.StatusCode, details: str | None) -> str:
    """Return the text of a call's error."""
    return cut(f"{code.name}: {details}")
