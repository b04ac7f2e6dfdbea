"""Alert rules for Prometheus, over the metrics of prometheus.py. `fairlock doctor --prometheus-rules` prints them."""

import os

with open(os.path.join(os.path.dirname(__file__), "alert_rules.yml"), encoding="utf-8") as file:
    RULES = file.read()
