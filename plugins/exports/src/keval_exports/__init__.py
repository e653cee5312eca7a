"""Exporters: runs as CSV, Parquet, JUnit XML, OpenTelemetry traces and Every Eval Ever files."""
