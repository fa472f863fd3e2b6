"""What several in-tree plugins use. No plugin knows another one."""
