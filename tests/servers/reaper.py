"""Ends what a test run has started if the run itself cannot: a process of its own that reads pids and folders.

Each line on its standard input is the pid of a server or the path of a folder, and is remembered. When the input
ends, its writer is gone, even if by kill -9. Then those processes are killed and those folders removed. A process is
remembered by a file descriptor, not by its number, which another process may have by then.
"""

import os
import shutil
import signal
import sys


def main() -> None:
    processes: list[int] = []
    folders: list[str] = []
    for line in sys.stdin:
        what = line.rstrip("\n")
        try:
            if what.startswith("/"):
                folders.append(what)
            else:
                processes.append(os.pidfd_open(int(what)))
        except OSError:  # it has ended already
            pass
    for process in processes:
        try:
            signal.pidfd_send_signal(process, signal.SIGKILL)
        except OSError:
            pass
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
