"""The examples for systemd and Kubernetes are valid: by systemd-analyze, by a parser of YAML, and by our own parser."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from typing import Any

import pytest

from fairlock.cli.command_table import COMMANDS
from fairlock.cli.parse_arguments import parse
from tests.integrations.conftest import Project

READ_YAML = """
import json, sys, yaml
print(json.dumps([yaml.safe_load(open(name)) for name in sys.argv[1:]]))
"""


@pytest.fixture
def files(project: Project) -> Project:
    project.take_files("integrations-deploy.md")
    return project


def test_the_units_of_systemd_are_valid(files: Project) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("This machine has no systemd-analyze.")
    for unit in ("scheduler.service", "report.timer", "report.service"):
        command = ["systemd-analyze", "verify", "--man=no", str(files.folder / unit)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        ours = [line for line in done.stderr.splitlines() if unit in line]
        assert ours == [], done.stderr


def test_the_commands_of_the_units_are_ours(files: Project) -> None:
    for unit in ("scheduler.service", "report.service"):
        (command,) = re.findall(r"(?m)^ExecStart=/usr/bin/env fairlock (.*)$", files.read(unit))
        assert parse(shlex.split(command), COMMANDS).operands[1:3] == ["--", "python3"]


def test_the_manifests_are_yaml_and_their_commands_are_ours(files: Project) -> None:
    deployment, leader = json.loads(files.run("-c", READ_YAML, "deployment.yaml", "leader.yaml"))
    assert deployment["spec"]["template"]["spec"]["containers"][0]["env"][0]["name"] == "FAIRLOCK_URL"
    for manifest, place in ((deployment, "initContainers"), (leader, "containers")):
        spec: dict[str, Any] = manifest["spec"]["template"]
        assert manifest["spec"]["selector"]["matchLabels"] == spec["metadata"]["labels"]
        program, *words = spec["spec"][place][0]["command"]
        assert program == "fairlock"
        assert parse(words, COMMANDS).operands[1:3] == ["--", "python"]
