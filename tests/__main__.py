"""Run the tests, several at a time where they leave each other alone: `python -m tests [--slow] [ARGUMENTS]`.

Tests with a virtual host and a database of their own run side by side; most of their time is waiting. Those
that restart services, raise alarms or close connections (`owned_services`) follow, one after the other.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Final

PROCESSES: Final = 5
NOTHING_SELECTED: Final = 5  # pytest's exit code


def run(arguments: Sequence[str]) -> int:
    """Run pytest in a process of its own and return its exit code; SIGTERM and SIGHUP are passed on."""
    child = subprocess.Popen([sys.executable, "-m", "pytest", *arguments])

    def pass_on(number: int, frame: FrameType | None) -> None:
        if number != signal.SIGINT:  # the terminal sends Ctrl-C to the child as well
            child.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    return child.wait()


def main(arguments: Sequence[str]) -> int:
    """Run both parts; 0 if no test failed and at least one was there."""
    chosen = [argument for argument in arguments if argument != "--slow"]
    speed = "" if "--slow" in arguments else " and not slow"
    codes = []
    for part in (
        ["-n", str(PROCESSES), "-m", f"not owned_services{speed}"],
        ["-m", f"owned_services{speed}"],
    ):
        code = run([*part, *chosen])
        if code not in (0, 1, NOTHING_SELECTED):
            return code  # interrupted, or pytest itself failed
        codes.append(code)
    if set(codes) == {NOTHING_SELECTED}:
        return NOTHING_SELECTED
    return 1 if 1 in codes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
