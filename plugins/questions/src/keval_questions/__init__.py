"""Questions for an evaluation, made from the tools of an MCP server: `keval generate`."""
