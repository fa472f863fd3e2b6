"""The server of `podium mcp`: offers the tools over the Model Context Protocol. Needs the extra `podium[mcp]`."""

from __future__ import annotations

from typing import Final

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

import podium
from podium.cli.mcp_tools import Tools

_INSTRUCTIONS: Final = (
    "Questions about one Kubernetes cluster, answered by the rules of its scheduler. No tool changes anything. Answers "
    "are JSON; `at` is the time of the cluster's objects, `cut` says what is left out of a large answer."
)


def server_of(tools: Tools) -> MCPServer:
    """Return the server of these tools."""
    server = MCPServer("podium", instructions=_INSTRUCTIONS, version=podium.__version__)
    for tool in tools.all:
        server.add_tool(tool, annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    return server
