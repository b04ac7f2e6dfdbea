"""`fairlock doctor --prometheus-rules` and `--deadlocks`."""

import json
import re
import subprocess
from pathlib import Path

from fairlock.metrics import prometheus
from fairlock.metrics.alert_rules import RULES
from tests.cli.conftest import TOOL, Tool, until
from tests.servers import programs
from tests.servers.fixtures import lacking


def test_the_rules_need_no_store(fairlock: Tool) -> None:
    done = fairlock("-u", "redis://127.0.0.1:1", "doctor", "--prometheus-rules")
    assert (done.returncode, done.stdout, done.stderr) == (0, RULES, "")
    assert json.loads(fairlock("--json", "doctor", "--prometheus-rules").stdout) == {"rules": RULES}
    assert RULES.count("- alert: ") == 5


def test_the_rules_use_metrics_that_exist() -> None:
    used = set(re.findall(r"fairlock_[a-z_]+", RULES))
    known = set(re.findall(r"fairlock_[a-z_]+", prometheus.__doc__ or ""))
    suffixes = ("_count", "_bucket", "_sum")
    for name in used:
        base = next((name.removesuffix(end) for end in suffixes if name.endswith(end)), name)
        assert base in known, name


def test_promtool_accepts_the_rules(tmp_path: Path) -> None:
    promtool = programs.find("promtool") or lacking("This machine has no promtool.")
    file = tmp_path / "rules.yml"
    file.write_text(RULES)
    checked = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "5 rules found" in checked.stdout


ALERTS = """\
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: fairlock_lost_total{group="first", reason="expired", instance="a"}
        values: '_x19 1x40'
      - series: fairlock_lost_total{group="again", reason="expired", instance="a"}
        values: '1x19 2x40'
      - series: fairlock_lost_total{group="quiet", reason="expired", instance="a"}
        values: '3x60'
    alert_rule_test:
      - {eval_time: 22m, alertname: FairlockLeaseLost, exp_alerts: [
          {exp_labels: {group: first, reason: expired, severity: critical}},
          {exp_labels: {group: again, reason: expired, severity: critical}}]}
      - {eval_time: 40m, alertname: FairlockLeaseLost, exp_alerts: []}
"""


def test_the_first_loss_of_a_group_alerts_as_the_next_ones_do(tmp_path: Path) -> None:
    """A counter appears with the first loss: before, `increase` saw no change from nothing to 1."""
    promtool = programs.find("promtool") or lacking("This machine has no promtool.")
    rules = re.sub(r" +annotations:\n +summary: .*\n +description: .*\n", "", RULES)  # exp_alerts would repeat them
    (tmp_path / "rules.yml").write_text(rules)
    (tmp_path / "alerts.yml").write_text(ALERTS)
    tested = subprocess.run(
        [promtool, "test", "rules", "alerts.yml"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_no_deadlock(fairlock: Tool) -> None:
    done = fairlock("doctor", "--deadlocks")
    assert done.returncode == 0
    assert done.stdout.startswith("no deadlock in sqlite:///")


def test_a_deadlock_is_named_with_the_cure(fairlock: Tool) -> None:
    """Two processes, each holding what the other waits for."""
    program = (
        "import sys, fairlock\n"
        "locks = fairlock.connect(sys.argv[1], owner=sys.argv[2])\n"
        "with locks.lock(sys.argv[3]):\n"
        "    print('in', flush=True); sys.stdin.readline()\n"
        "    locks.lock(sys.argv[4]).acquire()\n"
    )
    held = []
    for owner, first, second in (("one", "x", "y"), ("two", "y", "x")):
        it = subprocess.Popen(
            [TOOL[0], "-W", "ignore", "-c", program, fairlock.url, owner, first, second],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=fairlock.env,
        )  # fmt: skip
        fairlock.started.append(it)
        held.append(it)
        assert it.stdout is not None
        assert it.stdout.readline() == "in\n"
    for it in held:
        assert it.stdin is not None
        it.stdin.write("\n")
        it.stdin.flush()
    until(lambda: fairlock.queue("x") and fairlock.queue("y"))
    done = fairlock("doctor", "--deadlocks")
    assert done.returncode == 75, done.stdout + done.stderr
    assert re.search(r"^deadlock: 2 wait for each other$", done.stdout, re.M), done.stdout
    assert re.search(r"one thread [0-9a-f]{6} holds 'x' and waits for 'y' since", done.stdout)
    cure = re.search(r"or: (fairlock evict [xy] --ticket \S+ --reason deadlock)$", done.stdout, re.M)
    assert cure is not None, done.stdout
    rings = json.loads(fairlock("--json", "doctor", "--deadlocks").stdout)["rings"]
    assert [ring["certain"] for ring in rings] == [True]
    assert {member["waits_for"] for member in rings[0]["members"]} == {"x", "y"}
    assert fairlock(*cure.group(1).split()[1:], "--at-once", "-y").returncode == 0
    until(lambda: fairlock("doctor", "--deadlocks").returncode == 0)
