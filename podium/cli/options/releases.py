"""The option `--decide-as`: the minor of Kubernetes whose rules decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from podium.cli import event_loop
from podium.cli.output import say
from podium.config import EVALUATED, NEWEST, RELEASES, Release
from podium.lib.log import get_logger

if TYPE_CHECKING:
    from podium.client.credentials import ConnectionConfigError
    from podium.daemon.options import ReleaseOrigin
    from podium.objects.api_errors import ApiError

log = get_logger("config")

_META: Final = __name__


def _keep(context: click.Context, _: click.Parameter, minor: str | None) -> None:
    if minor is not None:
        context.meta[_META] = EVALUATED[minor]


def decide_as_option(
    default: str, releases: Mapping[str, Release] = RELEASES, note: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what adds `--decide-as` to a command; `default` says as which minor it decides without the option.

    Args:
        releases: what can be chosen.
        note: a sentence for the help text.
    """
    return click.option(
        "--decide-as",
        type=click.Choice(list(releases)),
        callback=_keep,
        expose_value=False,
        help=f"Decide as kube-scheduler of this minor of Kubernetes. By default {default}.{note}",
    )


as_the_newest: Final = decide_as_option(f"the newest that podium knows, {NEWEST.minor}")
"""Adds `--decide-as` to a command that asks no API server for its version."""
as_the_server: Final = decide_as_option("that of the API server")
"""Adds `--decide-as` to a command that decides for the cluster that it connects to."""
OF_THE_CLUSTER: Final = f"that of the running cluster, and for files {NEWEST.minor}"
as_the_cluster: Final = decide_as_option(OF_THE_CLUSTER)
"""Adds `--decide-as` to a question, about a running cluster or files."""


def release_asked() -> Release | None:
    """Return the release that the running command's `--decide-as` names, or `take_release_of` has found.

    None if there is neither.
    """
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_META)


def take_release_of(clusters: Sequence[str], kubeconfig: str | None, context: str | None) -> None:
    """Let the running cluster's own release decide the question, and name it on standard error if it is not the newest.

    The newest decides about files, the one of `--decide-as` about everything.
    """
    from podium.objects.api_errors import ApiError, Unauthorized, Unreachable

    if clusters or release_asked() is not None:
        return
    answer = _ask(kubeconfig, context, None)
    if isinstance(answer, tuple):
        release, server = answer
        click.get_current_context().meta[_META] = release
        # Of the newest on its own there is nothing to say: files are answered by its rules, too.
        if not (release.minor == NEWEST.minor and server.startswith(f"v{NEWEST.minor}.")):
            say(f"deciding as kube-scheduler {release.minor}: the API server is {server}", err=True)
    # Whoever cannot be reached is complained of where the objects are listed.
    elif isinstance(answer, ApiError) and not isinstance(answer, Unreachable | Unauthorized):
        say(f"warning: deciding as kube-scheduler {NEWEST.minor}: the API server hides its version: {answer}", err=True)


def release_to_run(
    kubeconfig: str | None, master: str | None, *, context: str | None = None
) -> tuple[Release, ReleaseOrigin]:
    """Return the release to decide as, `--decide-as` or else that of the API server, and where it comes from."""
    from podium.client.advice import diagnosis_of
    from podium.daemon.options import ReleaseOrigin
    from podium.objects.api_errors import ApiError

    if (release := release_asked()) is not None:
        log.info("Deciding as kube-scheduler does", minor=release.minor, origin="--decide-as")
        return release, ReleaseOrigin.ASKED_FOR
    answer = _ask(kubeconfig, context, master)
    if isinstance(answer, ApiError):
        cause, _ = diagnosis_of(answer)
        log.warning("The API server's version is unknown", cause=cause, error=str(answer), minor=NEWEST.minor)
    # Credentials that cannot be used end the process with all that is wrong about them, later.
    if not isinstance(answer, tuple):
        return NEWEST, ReleaseOrigin.ASSUMED
    release, server = answer
    log.info("Deciding as kube-scheduler does", minor=release.minor, origin=f"the API server is {server}")
    if not server.startswith(f"v{release.minor}."):
        log.warning("The API server is of a minor without rules of its own", server=server, minor=release.minor)
    return release, ReleaseOrigin.SERVERS


def _ask(
    kubeconfig: str | None, context: str | None, master: str | None
) -> tuple[Release, str] | ApiError | ConnectionConfigError:
    """Return the API server's release and version, or why it does not say."""
    from podium.client.credentials import ConnectionConfigError
    from podium.client.server_version import release_of
    from podium.lib.system_clock import SystemClock
    from podium.objects.api_errors import ApiError
    from podium.server.process import connect

    async def ask() -> tuple[Release, str] | ApiError | ConnectionConfigError:
        try:
            connection = await connect(SystemClock(), kubeconfig, context=context, master=master)
            async with connection.session() as session:
                return await release_of(session)
        except (ApiError, ConnectionConfigError) as error:
            return error

    return event_loop.run(ask)
