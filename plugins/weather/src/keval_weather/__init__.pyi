"""Weather for keval: an MCP server (`keval_weather.server`), its context, and the ground truth of weather questions."""

from keval_weather.context import Weather as Weather
