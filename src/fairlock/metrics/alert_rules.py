"""Alert rules for Prometheus, over the metrics of prometheus.py. `fairlock doctor --prometheus-rules` prints them."""

RULES = """\
groups:
  - name: fairlock
    rules:
      - alert: FairlockLeaseLost
        # The counter of a group appears with its first loss, which `increase` does not see.
        expr: |
          sum by (group, reason) (
            (increase(fairlock_lost_total[10m]) > 0) or (fairlock_lost_total unless fairlock_lost_total offset 10m)) > 0
        labels:
          severity: critical
        annotations:
          summary: 'A lease on {{ $labels.group }} was lost ({{ $labels.reason }}).'
          description: 'Its holder may have gone on while another one held the lock. Check the fences of what it wrote.'
      - alert: FairlockDeadlock
        expr: max by (instance) (fairlock_deadlocks{certain="true"}) > 0
        for: 30s
        labels:
          severity: critical
        annotations:
          summary: 'Holders of locks wait for each other.'
          description: '`fairlock doctor --deadlocks` names them. Only `fairlock ui` exports this metric.'
      - alert: FairlockTimeouts
        expr: |
          sum by (group) (rate(fairlock_acquire_duration_seconds_count{outcome="timeout"}[5m]))
            > 0.05 * sum by (group) (rate(fairlock_acquire_duration_seconds_count[5m]))
        for: 10m
        labels:
          severity: warning
        annotations:
          summary: 'More than 5 % of the acquires of {{ $labels.group }} time out.'
          description: '`fairlock top` shows which holders cause the waiting.'
      - alert: FairlockSlowAcquire
        expr: |
          histogram_quantile(0.99, sum by (group, le) (
            rate(fairlock_acquire_duration_seconds_bucket{outcome="acquired"}[5m]))) > 10
        for: 10m
        labels:
          severity: warning
        annotations:
          summary: 'It takes more than 10 s to acquire {{ $labels.group }} (99th percentile).'
          description: 'Hold the lock for a shorter time, or split what it protects.'
      - alert: FairlockLeaseMargin
        expr: |
          sum by (group) (rate(fairlock_lease_margin_seconds_bucket{le="2.5"}[10m]))
            > 0.01 * sum by (group) (rate(fairlock_lease_margin_seconds_count[10m]))
        for: 10m
        labels:
          severity: warning
        annotations:
          summary: 'Leases on {{ $labels.group }} are renewed with less than 2.5 s left.'
          description: 'The store or the process is slow. Use a longer lease, or find out what stops it.'
"""
