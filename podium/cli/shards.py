"""`podium shards`: which member of a group of schedulers owns which nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from podium.cli.options.paths import FILE
from podium.cli.options.shards import shard_name
from podium.cli.output import TEXT, output_option, print_value

if TYPE_CHECKING:
    from podium.objects.core import Node
    from podium.shards.report import GroupReport

_DEADLINE_S = 30.0
_UNITS_SHOWN = 4


@click.command()
@click.argument("group", callback=shard_name)
@click.option("--namespace", default="kube-system", show_default=True, help="Where the Leases of the members are.")
@click.option("--kubeconfig", type=FILE, help="The kubeconfig. [kubectl's]")
@click.option("--context", help="A context of the kubeconfig. [the current one]")
@output_option()
def command(group: str, namespace: str, kubeconfig: str | None, context: str | None, output: str) -> None:
    """Show which member of a GROUP of `podium run --shards` owns which nodes."""
    from podium.cli import event_loop
    from podium.client.credentials import ConnectionConfigError
    from podium.objects.api_errors import ApiError

    try:
        report = event_loop.run(lambda: _read(group, namespace, kubeconfig, context))
    except (ApiError, ConnectionConfigError) as error:
        raise click.ClickException(str(error)) from error
    # A misspelt group must not look like one whose members are all away.
    if not report.members:
        raise click.ClickException(f"no Lease in {namespace} belongs to a member of the group {group}")
    if output == TEXT:
        _print(report)
    else:
        print_value(report.as_dict(), output)


async def _read(group: str, namespace: str, kubeconfig: str | None, context: str | None) -> GroupReport:
    from podium.client.credentials import load
    from podium.client.listing import all_objects
    from podium.client.session import ApiSession
    from podium.lib.system_clock import SystemClock
    from podium.objects.resource_types import NODES
    from podium.server.election.shard_leases import list_member_leases
    from podium.shards.report import report_on

    # The clock of this machine: if it is wrong, a member may look expired that is alive.
    clock = SystemClock()
    credentials = await load(kubeconfig=kubeconfig, context=context, clock=clock)
    async with ApiSession(credentials, may_write=lambda: False) as session:
        leases = await list_member_leases(session, namespace, group, deadline_s=_DEADLINE_S)
        manifests = await all_objects(session, NODES, may_be_absent=False)
    nodes = [_node(manifest) for manifest in manifests]
    return report_on(group, leases, nodes, clock.now())


def _node(manifest: dict[str, Any]) -> Node:
    """Return the node as far as it is divided: whatever else it has, however broken, does not matter."""
    from podium.objects.core import Node
    from podium.objects.meta import ObjectMeta

    metadata = manifest.get("metadata") or {}
    labels = {str(key): str(value) for key, value in (metadata.get("labels") or {}).items()}
    return Node(metadata=ObjectMeta(name=str(metadata.get("name")), labels=labels))


def _print(report: GroupReport) -> None:
    from rich import box
    from rich.table import Table

    from podium.cli.asking import show
    from podium.cli.plain_text import plain
    from podium.lib.plurals import count_of

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("MEMBER", "STATE", "NODES", "CONTESTED", "DIVIDED BY", "OWNS", "VERSION"):
        table.add_column(title, justify="right" if title in ("NODES", "CONTESTED") else "left", overflow="fold")
    for member in report.members:
        units = ", ".join(member.units[:_UNITS_SHOWN])
        if len(member.units) > _UNITS_SHOWN:
            units += f" and {len(member.units) - _UNITS_SHOWN} more"
        counts = f"{len(member.nodes):,}", f"{len(member.contested):,}"
        row = (member.member, member.state, *counts, member.shard_key, units or "-", member.version or "?")
        table.add_row(*map(plain, row))
    show(
        table, f"{count_of(len(report.unowned), 'node')} of no member" if report.unowned else "Every node has a member"
    )
