"""From a YAML file to an evaluation: reading with places, structuring, selecting; every problem at once."""
