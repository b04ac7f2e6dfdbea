"""locks.once(name, cron=…), with croniter: which tick a time belongs to, in UTC, and one execution for each."""

from tests.integrations.conftest import Project

TICKS = """
from datetime import UTC, datetime
from fairlock.recipes.tick_schedule import Ticks

def tick(cron, text):
    now = datetime.fromisoformat(text).replace(tzinfo=UTC)
    found = Ticks(None, cron).at(int(now.timestamp() * 1_000_000))
    print(*(datetime.fromtimestamp(at / 1e6, UTC).isoformat(" ", "seconds")[:-6] for at in found))

tick("0 3 * * *", "2026-11-18 12:37:00")
tick("0 3 * * *", "2026-11-18 03:00:00")
tick("0 3 * * *", "2026-11-18 02:59:59.999999")
tick("*/5 * * * *", "2026-03-29 02:31:00")
tick("0 0 1 * *", "2026-02-28 23:59:59")
"""

EXPECTED = """\
2026-11-18 03:00:00 2026-11-19 03:00:00
2026-11-18 03:00:00 2026-11-19 03:00:00
2026-11-17 03:00:00 2026-11-18 03:00:00
2026-03-29 02:30:00 2026-03-29 02:35:00
2026-02-01 00:00:00 2026-03-01 00:00:00
"""

ONCE = """
import fairlock
locks = fairlock.connect()

@locks.once("yearly", cron="0 0 1 1 *")
def job():
    return "done"

print(job(), job())
for cron in ["sometimes", 5, b"* * * * *", "", "R * * * *", "0 0 30 2 *", "0 0 1 1 * 0 2020"]:
    try:
        locks.once("x", cron=cron)
    except fairlock.ConfigError as bad:
        print(bad)
"""

REFUSED = """\
cron is an expression such as '0 3 * * *', not 'sometimes'.
cron is an expression such as '0 3 * * *', not 5.
cron is an expression such as '0 3 * * *', not b'* * * * *'.
cron is an expression such as '0 3 * * *', not ''.
cron='R * * * *' has a random field, and all processes need the same ticks.
cron='0 0 30 2 *' names no time, or none that comes again.
cron='0 0 1 1 * 0 2020' names no time, or none that comes again.
"""


def test_a_time_belongs_to_the_tick_that_has_begun(project: Project) -> None:
    project.env["TZ"] = "America/New_York"
    project.write("ticks.py", TICKS)
    assert project.run("ticks.py") == EXPECTED


def test_each_tick_is_executed_once(project: Project) -> None:
    project.write("job.py", ONCE)
    assert project.run("job.py") == "done None\n" + REFUSED
    assert project.run("job.py").startswith("None None\n"), "another process, the same tick"
