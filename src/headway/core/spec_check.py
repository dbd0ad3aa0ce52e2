"""What is refused of what a caller asks for."""

from headway.core import defaults
from headway.core.errors import BadValue
from headway.core.spec import JobSpec


def check_spec(spec: JobSpec) -> None:
    """Refuses values that no queue could honour, naming the key."""
    # Spelled out: this runs for every job, and a loop over names costs ten times more.
    longest_ms = defaults.DURATION_MAX_MS
    if (value := spec.slo_ms) is not None and not 1 <= value <= longest_ms:
        raise _outside("slo_ms", value, 1, longest_ms)
    if (value := spec.run_at_ms) is not None and not 0 <= value <= defaults.TIME_MAX_MS:
        raise _outside("run_at_ms", value, 0, defaults.TIME_MAX_MS)
    if (value := spec.delay_ms) is not None and not 0 <= value <= longest_ms:
        raise _outside("delay_ms", value, 0, longest_ms)
    if (value := spec.timeout_ms) is not None and not 1 <= value <= longest_ms:
        raise _outside("timeout_ms", value, 1, longest_ms)
    if (value := spec.lifetime_ms) is not None and not 1 <= value <= longest_ms:
        raise _outside("lifetime_ms", value, 1, longest_ms)
    if (value := spec.result_ms) is not None and not 1 <= value <= longest_ms:
        raise _outside("result_ms", value, 1, longest_ms)
    most = defaults.COUNT_MAX
    if (value := spec.priority) is not None and not -most <= value <= most:
        raise _outside("priority", value, -most, most)
    if (value := spec.cost) is not None and not 0 <= value <= most:
        raise _outside("cost", value, 0, most)
    if (value := spec.attempts_max) is not None and not 1 <= value <= most:
        raise _outside("attempts_max", value, 1, most)
    least, heaviest = defaults.WEIGHT_MIN, defaults.WEIGHT_MAX
    if (weight := spec.weight) is not None and not least <= weight <= heaviest:
        raise _outside("weight", weight, least, heaviest)
    longest = defaults.NAME_LENGTH_MAX
    if len(spec.kind) > longest:
        raise BadValue("kind", spec.kind, f"at most {longest} characters")
    if len(spec.tenant) > longest:
        raise BadValue("tenant", spec.tenant, f"at most {longest} characters")
    if spec.labels is not None and len(spec.labels) > defaults.LABELS_MAX:
        raise BadValue("labels", spec.labels, f"at most {defaults.LABELS_MAX}")


def _outside(key: str, value: float, low: float, high: float) -> BadValue:
    return BadValue(key, value, f"must be from {low} to {high}")
