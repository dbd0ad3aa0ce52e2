"""What is refused of what a caller asks for."""

from typing import Any

from msgspec.structs import astuple

from headway.core import defaults
from headway.core.errors import BadValue
from headway.core.spec import JobSpec


def check_spec(spec: JobSpec) -> tuple[int | None, str | None, tuple[Any, ...]]:
    """Refuses values that no queue could honour, naming the key.

    Answers what is to be known before any job is made: its SLO, its idempotency key;
    and all that is said in it, which takes long to find out.
    """
    # Spelled out: this runs for every job, and a loop over names costs ten times more.
    # All at once: compiled code looks a single field of a record up by its name.
    said = astuple(spec)
    kind, _, _, tenant, slo_ms, run_at_ms, delay_ms, priority, weight, cost = said[:10]
    _, labels, _, timeout_ms, lifetime_ms, attempts_max, _, key, _, result_ms = said[
        10:
    ]
    longest_ms = defaults.DURATION_MAX_MS
    if slo_ms is not None and not 1 <= slo_ms <= longest_ms:
        raise _outside("slo_ms", slo_ms, 1, longest_ms)
    if run_at_ms is not None and not 0 <= run_at_ms <= defaults.TIME_MAX_MS:
        raise _outside("run_at_ms", run_at_ms, 0, defaults.TIME_MAX_MS)
    if delay_ms is not None and not 0 <= delay_ms <= longest_ms:
        raise _outside("delay_ms", delay_ms, 0, longest_ms)
    if timeout_ms is not None and not 1 <= timeout_ms <= longest_ms:
        raise _outside("timeout_ms", timeout_ms, 1, longest_ms)
    if lifetime_ms is not None and not 1 <= lifetime_ms <= longest_ms:
        raise _outside("lifetime_ms", lifetime_ms, 1, longest_ms)
    if result_ms is not None and not 1 <= result_ms <= longest_ms:
        raise _outside("result_ms", result_ms, 1, longest_ms)
    most = defaults.COUNT_MAX
    if priority is not None and not -most <= priority <= most:
        raise _outside("priority", priority, -most, most)
    if cost is not None and not 0 <= cost <= most:
        raise _outside("cost", cost, 0, most)
    if attempts_max is not None and not 1 <= attempts_max <= most:
        raise _outside("attempts_max", attempts_max, 1, most)
    least, heaviest = defaults.WEIGHT_MIN, defaults.WEIGHT_MAX
    if weight is not None and not least <= weight <= heaviest:
        raise _outside("weight", weight, least, heaviest)
    longest = defaults.NAME_LENGTH_MAX
    if len(kind) > longest:
        raise BadValue("kind", kind, f"at most {longest} characters")
    if len(tenant) > longest:
        raise BadValue("tenant", tenant, f"at most {longest} characters")
    if labels is not None and len(labels) > defaults.LABELS_MAX:
        raise BadValue("labels", labels, f"at most {defaults.LABELS_MAX}")
    return slo_ms, key, said


def _outside(key: str, value: float, low: float, high: float) -> BadValue:
    return BadValue(key, value, f"must be from {low} to {high}")
