"""The seams: Protocols of all plugins, hooks, the registry, and what plugins are handed."""
