"""The server of `podium mcp`: offers the tools over the Model Context Protocol. Needs the extra `podium[mcp]`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from mcp.types import ToolAnnotations
from pydantic import ConfigDict, create_model

import podium
from podium.cli.mcp_tools import Tools

_INSTRUCTIONS: Final = (
    "Questions about one Kubernetes cluster, answered by the rules of its scheduler. No tool changes anything. Answers "
    "are JSON; `at` is the time of the cluster's objects, `cut` says what is left out of a large answer."
)


class _Strict(ArgModelBase):
    """Has no fields but its own."""

    model_config = ConfigDict(extra="forbid")


def server_of(tools: Tools) -> MCPServer:
    """Return the server of these tools."""
    all_tools = [_tool_of(function) for function in tools.all]
    return MCPServer("podium", instructions=_INSTRUCTIONS, version=podium.__version__, tools=all_tools)


def _tool_of(function: Callable[..., Any]) -> Tool:
    """Return the tool of a function, which refuses arguments that the function does not have."""
    tool = Tool.from_function(function, annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    arguments = tool.fn_metadata.arg_model
    # Otherwise an argument with a misspelt name would be left out of account.
    tool.fn_metadata.arg_model = create_model(arguments.__name__, __base__=(arguments, _Strict))
    tool.parameters = {**tool.parameters, "additionalProperties": False}
    return tool
