"""Shared code of several in-tree plugins. No plugin imports another one."""
