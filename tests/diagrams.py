"""The state diagrams of ARCHITECTURE.md, made from the tables in the code.

`python -m tests.diagrams` writes them into the page; a test fails where the page says something else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from podium.binder import BINDING_CYCLE
from podium.client.reflector_states import TRANSITIONS
from podium.cluster.pod_states import POD_STATES
from podium.lib.state_table import StateTable
from podium.queues import QUEUE_STATES
from podium.server.election import LEASE
from tests.page_command import run_as_command

PAGE = Path(__file__).parents[1] / "ARCHITECTURE.md"
TABLES: tuple[StateTable[Any, Any], ...] = (QUEUE_STATES, POD_STATES, BINDING_CYCLE, TRANSITIONS, LEASE)

_BEGIN, _END = "<!-- diagrams -->", "<!-- /diagrams -->"


def diagrams() -> str:
    """All diagrams, each under its machine's name."""
    return "\n".join(f"\n**{table.name}**\n\n```mermaid\n{table.mermaid()}\n```" for table in TABLES)


def with_diagrams(page: str) -> str:
    """The page with its diagrams brought up to date."""
    head, _, tail = page.partition(_BEGIN)
    _, _, tail_after = tail.partition(_END)
    return f"{head}{_BEGIN}\n{diagrams()}\n\n{_END}{tail_after}"


if __name__ == "__main__":
    run_as_command(lambda: PAGE.write_text(with_diagrams(PAGE.read_text())), __doc__)
