"""What the disk itself can do: the bound that no durable answer gets under."""

import os
import time
from pathlib import Path

APPEND_BYTES = 512


def flush_ms(folder: Path, count: int = 1_000) -> list[float]:
    """How long each of `count` small appends took to reach the disk, sorted."""
    taken = []
    file = os.open(folder / "flushes", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for _ in range(count):
            began_s = time.perf_counter()
            os.write(file, b"x" * APPEND_BYTES)
            os.fsync(file)
            taken.append((time.perf_counter() - began_s) * 1e3)
    finally:
        os.close(file)
    return sorted(taken)


def p99(ranked: list[float]) -> float:
    return ranked[len(ranked) * 99 // 100]
