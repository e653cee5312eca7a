"""Exporters: runs as CSV, Parquet, JUnit XML and OpenTelemetry traces."""
