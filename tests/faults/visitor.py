"""The command of a `fairlock run`: it works under the lock, and reports it. It knows nothing of fairlock but its
environment, and believes for as long as it runs.

    python visitor.py REFEREE HOLD SECONDS
"""

import os
import sys
import time

from reports import Reporter

report = Reporter(sys.argv[1])
facts = {"hold": sys.argv[2], "name": os.environ["FAIRLOCK_NAME"], "fence": int(os.environ["FAIRLOCK_FENCE"])}
report("in", **facts)
end = time.monotonic() + float(sys.argv[3])
while True:
    report("write", held=True, **facts)
    if time.monotonic() >= end:
        break
    time.sleep(0.03)
