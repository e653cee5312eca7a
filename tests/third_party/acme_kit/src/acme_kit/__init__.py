"""A third party's parts for keval: agent, context, dataset, executor, exporter, middleware."""
