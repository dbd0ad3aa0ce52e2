"""Says where a result was measured: commit and machine, without naming the machine."""

import os
import platform
import subprocess
from pathlib import Path


def commit() -> str:
    """The short commit, with a mark when the tree differs from it."""
    head = git("rev-parse", "--short=12", "HEAD")
    if not head:
        return "none"
    is_changed = bool(git("status", "--porcelain", "--untracked-files=no"))
    return f"{head} with changes" if is_changed else head


def git(*arguments: str) -> str:
    try:
        result = subprocess.run(
            ["git", *arguments], check=True, capture_output=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return result.stdout.strip()


def machine() -> str:
    """Processor, cores, memory, system and Python."""
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    system = f"{platform.system()} {platform.machine()}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{processor()}, {cores} cores, {gib:.0f} GiB, {system}, {python}"


def processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"
