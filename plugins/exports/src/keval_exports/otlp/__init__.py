"""A run as OpenTelemetry traces and logs, by the semantic conventions for generative AI."""

from keval_exports.otlp.export import Otlp

__all__ = ["Otlp"]
