"""Metrics and traces of a client, made from its events.

    group_lock_names  groups names, so that the number of time series stays bounded
    measure_events    counts and measures events; what the two below share
    otel              OpenTelemetry: `connect(url, on_event=fairlock.metrics.otel.Metrics())`
    prometheus        Prometheus: `connect(url, on_event=fairlock.metrics.prometheus.Metrics())`
    alert_rules       alert rules for Prometheus
"""
