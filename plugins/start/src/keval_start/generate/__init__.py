"""`keval generate`: questions from the tools of an MCP server, with golden answers and the calls that prove them.

`command` is the flow. `toolbox` calls the tools, `requests` has what the model is told and how its replies are read,
`checks` decides what is kept, and `generator` puts these together.
"""
