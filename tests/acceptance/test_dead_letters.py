"""Does a dead letter outlive those who read it?"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from ..waiting import wait_until
from .deployment import Deployment, probe
from .workers import ROOT

_TIMES: Final = 40


def test_a_dead_letter_outlives_forty_looks_and_forty_crashes_of_its_reader(deployment: Deployment) -> None:
    """Getting and returning a dead letter, or dying with it in hand, forty times each does not destroy it."""
    worker = deployment.start().wait_ready()
    deployment.send(probe("rejected", rejections=1))
    deployment.wait_for_dead_letter()
    worker.stop()
    for _ in range(_TIMES):
        assert [letter.name for letter in deployment.dead_letters()] == ["rejected"]
    reader = ["-m", "tests.acceptance.crashing_reader", deployment.rabbit.url, "critical.XQ", str(_TIMES)]
    subprocess.run([sys.executable, *reader], cwd=ROOT, check=True)
    wait_until(lambda: deployment.rabbit.ready("critical.XQ") == 1, what="the dead letter to be back")
    assert [letter.name for letter in deployment.dead_letters()] == ["rejected"]
