"""Memory of this process."""

from pathlib import Path


def resident_bytes() -> int:
    """As Linux counts it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1_024
    raise RuntimeError("no VmRSS in /proc/self/status")
