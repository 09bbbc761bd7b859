"""Is a message one of several submissions of one job, and what becomes of the others?

Not to be confused with an idempotency key, which is spent for good by an effect that took place: a `job_id`
is taken while its job is unfinished, and says nothing about effects.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple

DROP: Final = "drop"
THROTTLE: Final = "throttle"
DEBOUNCE: Final = "debounce"
REPLACE: Final = "replace"
KEEP_LAST: Final = "keep_last"
MODES: Final = (DROP, THROTTLE, DEBOUNCE, REPLACE, KEEP_LAST)
_MS: Final = timedelta(milliseconds=1)


class Submission(NamedTuple):
    """What a message's options `job_id`, `job_mode`, `job_window` and `job_generation` say.

    Attributes:
        job_id: names the job, whatever message carries it.
        mode: one of `MODES`.
        window: of `throttle`, for how long no other submission is taken.
        generation: of `replace` and `keep_last`, the number of this submission; 0 before it has one.
    """

    job_id: str
    mode: str = DROP
    window: timedelta = timedelta(0)
    generation: int = 0


def submission_of(options: Mapping[str, Any]) -> Submission | None:
    """Return what a message's options say; None without a `job_id`."""
    job_id = options.get("job_id")
    if job_id is None:
        return None
    return Submission(
        job_id,
        DROP if options.get("job_mode") is None else options["job_mode"],
        (options.get("job_window") or 0) * _MS,
        options.get("job_generation") or 0,
    )


def misuse(submission: Submission, delay_ms: int | None) -> str:
    """Return what is wrong with a submission, empty if nothing is."""
    label = f"job_id {submission.job_id!r}: expected job_mode={submission.mode!r} to come with"
    if submission.mode == THROTTLE and not submission.window:
        return f"{label} job_window, got: none; say for how many milliseconds no other submission is taken"
    if submission.mode == DEBOUNCE and not delay_ms:
        return f"{label} a delay, got: none; say how long to wait for another submission"
    return ""
