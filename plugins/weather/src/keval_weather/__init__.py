"""Weather for keval: an MCP server (`keval_weather.server`), its context, and the ground truth of weather questions."""

from keval import lazily

# Imported when first used: the server's process, which trials wait for, has no use for the context.
__getattr__, __dir__, __all__ = lazily(__name__, {"keval_weather.context": "Weather"})
