"""Asks a running podium about its attempts at a pod. This module decides nothing about them."""

from __future__ import annotations

import ssl
from typing import Final
from urllib.parse import quote

import click

from podium.cli import event_loop
from podium.cli.options.running_podium import RunningPodium
from podium.client.advice import causes, diagnosis_of
from podium.client.credentials import ConnectionConfigError, for_endpoint
from podium.client.requests import LIST_BYTES_MAX
from podium.client.session import ApiSession
from podium.lib.system_clock import SystemClock
from podium.objects.api_errors import ApiError, ConnectionLost, Forbidden, NotFound, Unauthorized, Unreachable

_DEADLINE_S: Final = 10.0
_RULE: Final = '{nonResourceURLs: ["/debug/pods/*"], verbs: [get]}'
_INSTEAD: Final = "or ask the cluster itself with --kubeconfig instead of --url"


def story_of(podium: RunningPodium, pod: str, namespace: str, node: str) -> bytes:
    """Read the pod's story from the page /debug/pods, in JSON.

    Args:
        pod: the pod's name, or `namespace/name`.
        node: a node to include in the answer; "" for none.

    Raises:
        click.ClickException: podium cannot be asked, or does not know the pod or the node.
    """
    path = page_of(pod, namespace, node)

    async def ask() -> bytes:
        credentials = for_endpoint(
            podium.url,
            SystemClock(),
            token_file=podium.token_file,
            authorities=podium.authorities,
            verify=podium.verify,
            may_send_unencrypted=podium.may_send_unencrypted,
        )
        async with ApiSession(credentials) as session:
            return await session.request("GET", path, deadline_s=_DEADLINE_S, answer_bytes_max=LIST_BYTES_MAX)

    try:
        return event_loop.run(ask)
    except ConnectionConfigError as error:
        raise click.ClickException(str(error)) from error
    except ApiError as error:
        raise click.ClickException(f"{podium.url}: {_error_text(error, path.partition('?')[0])}") from error


def page_of(pod: str, namespace: str, node: str) -> str:
    """Return the path of the page about a pod, with its query.

    Args:
        pod: the pod's name, or `namespace/name`.
        node: a node to include in the answer; "" for none.
    """
    namespace, _, name = pod.rpartition("/") if "/" in pod else (namespace, "", pod)
    page = f"/debug/pods/{quote(namespace, safe='')}/{quote(name, safe='')}"
    return page + (f"?node={quote(node, safe='')}" if node else "")


def _error_text(error: ApiError, path: str) -> str:
    """Say what went wrong, and what the operator can do."""
    if isinstance(error, NotFound) and error.reason:
        return error.message
    if isinstance(error, NotFound):
        return f"there is no page {path}: check that a podium of this version listens there, {_INSTEAD}"
    if isinstance(error, Unauthorized):
        return (
            "podium does not accept the token: give one that the API server accepts with --token-file "
            f"(kubectl create token NAME prints one), {_INSTEAD}"
        )
    if isinstance(error, Forbidden):
        return f"{error.message}: add the rule {_RULE} to a ClusterRole of that user (see --token-file), {_INSTEAD}"
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes(error)):
        return (
            "podium's certificate is not one that is trusted: name its authority with --certificate-authority, or "
            f"accept any certificate, such as a self-made one, with --insecure-skip-tls-verify ({error})"
        )
    if isinstance(error, Unreachable):
        cause = diagnosis_of(error).cause
        return f"{cause}: check the address, and that podium runs and can be reached from here, {_INSTEAD} ({error})"
    if isinstance(error, ConnectionLost):
        return f"podium did not answer within {_DEADLINE_S:g} s: try again, {_INSTEAD} ({error})"
    return f"{error}: podium's log says more; try again, {_INSTEAD}"
