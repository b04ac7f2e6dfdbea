"""Metrics and traces of a client, made from its events.

    names        groups names, so that the number of time series stays bounded
    measure      counts and measures events; what the two below share
    otel         OpenTelemetry: `connect(url, on_event=fairlock.metrics.otel.Metrics())`
    prometheus   Prometheus: `connect(url, on_event=fairlock.metrics.prometheus.Metrics())`
    alert_rules  alert rules for Prometheus
"""
