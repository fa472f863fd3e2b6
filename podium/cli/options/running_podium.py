"""The options that name the running podium to ask, and the user's credentials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import click

from podium.cli.options.paths import FILE
from podium.cli.options.several import with_options
from podium.config.own_names import OWN_NAME

LEASE: Final = f"kube-system/{OWN_NAME}"


def _lease(_: click.Context, __: click.Parameter, value: str) -> str:
    namespace, slash, name = value.partition("/")
    if value and (not namespace or not slash or not name or "/" in name):
        raise click.BadParameter(f"{value} is not NAMESPACE/NAME")
    return value


lease_option: Final = click.option(
    "--lease",
    metavar="NAMESPACE/NAME",
    help="With a kubeconfig: the Lease whose holder is asked, '' for none.",
    default=LEASE,
    callback=_lease,
    show_default=True,
)
"""The option of a command that asks the running podium by its Lease."""

_OPTIONS: Final = (
    lease_option,
    click.option("--url", metavar="URL", help="Ask a running podium, such as https://localhost:10259."),
    click.option("--token-file", type=FILE, help="With --url: the bearer token of a user who may read its pages."),
    click.option(
        "--certificate-authority", type=FILE, help="With --url: the authority that signed podium's certificate."
    ),
    click.option("--insecure-skip-tls-verify", is_flag=True, help="With --url: accept any certificate."),
    click.option(
        "--send-token-unencrypted", is_flag=True, help="With --url http://…: send the token where others can read it."
    ),
)


@dataclass(frozen=True, slots=True)
class RunningPodium:
    """The address of a running podium, and the credentials for it. Empty paths mean none."""

    url: str
    token_file: str
    authorities: str
    verify: bool
    may_send_unencrypted: bool


def running_podium_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command that can ask a running podium."""
    return with_options(command, _OPTIONS)


def take_running_podium(parameters: dict[str, Any]) -> RunningPodium | None:
    """Remove these options from the command's parameters; None without `--url`. Raises: click.UsageError."""
    url, token_file = parameters.pop("url"), parameters.pop("token_file")
    authorities, is_insecure = parameters.pop("certificate_authority"), parameters.pop("insecure_skip_tls_verify")
    may_send_unencrypted = parameters.pop("send_token_unencrypted")
    if url is None:
        if token_file or authorities or is_insecure or may_send_unencrypted:
            raise click.UsageError(
                "--token-file, --certificate-authority, --insecure-skip-tls-verify and --send-token-unencrypted "
                "go with --url"
            )
        return None
    from podium.client.server_address import AddressError, base_url

    try:
        base_url(url, "--url")
    except AddressError as error:
        raise click.UsageError(str(error)) from None
    return RunningPodium(url, token_file or "", authorities or "", not is_insecure, may_send_unencrypted)
