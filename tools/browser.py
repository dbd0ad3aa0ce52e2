"""Gets a Chromium for the tests of the dashboard, where Debian's packages can be had.

Says in one line why not, if not: the tests are then left out, and counted.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping

from tools.chromium import found

PATIENCE_S = 600
STEPS = (
    ("update", "--quiet=2"),
    ("install", "--yes", "--quiet=2", "--no-install-recommends", "chromium"),
)


def obstacle() -> str | None:
    """Why none can be installed here; None if one can."""
    if shutil.which("apt-get") is None:
        return "there is no apt-get"
    if os.geteuid() != 0:
        return "that takes root: apt-get install chromium"
    return None


def install(environment: Mapping[str, str]) -> str | None:
    """Why it failed; None if it did not."""
    for step in STEPS:
        try:
            subprocess.run(
                ["apt-get", *step],
                check=True,
                timeout=PATIENCE_S,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**environment, "DEBIAN_FRONTEND": "noninteractive"},
            )
        except (OSError, subprocess.SubprocessError):
            return f"apt-get {step[0]} failed"
    return None


def main() -> None:
    if found() is not None:
        return
    reason = obstacle()
    if reason is None:
        print("installing Chromium for the tests of the dashboard", flush=True)
        reason = install(os.environ)
    if reason is not None:
        print(f"no Chromium, the dashboard's pages are not tested: {reason}")


if __name__ == "__main__":
    main()
