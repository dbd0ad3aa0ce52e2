"""Builds .venv and installs what a make target needs, with the standard library alone.

Nothing is trusted until its stamp is there, and stamps are written last: an aborted
run is repeated, and runs side by side wait for each other.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tools import pip_wheel

ROOT = Path(__file__).resolve().parent.parent


class Profile(NamedTuple):
    """What a target needs beside the plain package."""

    has_extras: bool
    groups: frozenset[str]

    def covers(self, other: "Profile") -> bool:
        """Whether a .venv with this profile is good enough for the other one."""
        return self.has_extras >= other.has_extras and self.groups >= other.groups


PROFILES = {
    "run": Profile(False, frozenset()),
    "pipeline": Profile(True, frozenset()),
    "bench": Profile(True, frozenset({"bench"})),
    "docs": Profile(True, frozenset({"docs"})),
    "test": Profile(True, frozenset({"docs", "test"})),
    "check": Profile(True, frozenset({"docs", "test", "check"})),
    "all": Profile(True, frozenset({"docs", "test", "check", "bench"})),
}


class Checkout(NamedTuple):
    """The files of one checkout that this script reads and writes."""

    root: Path

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def project(self) -> Path:
        return self.root / "pyproject.toml"

    @property
    def constraints(self) -> Path:
        return self.root / "constraints.txt"

    @property
    def unfinished(self) -> Path:
        return self.venv / ".install-is-under-way"

    def stamp(self, name: str) -> Path:
        return self.venv / f".{name}-is-installed"

    def digest(self) -> str:
        """Changes when an install could turn out otherwise, or .venv was moved."""
        digest = hashlib.sha256(str(self.venv).encode())
        for file in (self.project, self.constraints):
            digest.update(file.read_bytes() if file.exists() else b"-")
        return digest.hexdigest()


def prepare(checkout: Checkout, name: str) -> None:
    """Makes .venv hold the profile; does nothing when it does."""
    with locked(checkout.project):
        if is_installed(checkout, name):
            return
        if not is_built(checkout):
            base = Path(getattr(sys, "_base_executable", sys.executable))
            version = ".".join(map(str, sys.version_info[:3]))
            say(f"making .venv with Python {version}")
            build(checkout, base)
            write_stamp(checkout.stamp("venv"), str(checkout.venv))
        say(f"installing for make {'setup' if name == 'all' else name}")
        with under_way(checkout):
            install(checkout, PROFILES[name])
        write_stamp(checkout.stamp(name), checkout.digest())


@contextlib.contextmanager
def under_way(checkout: Checkout) -> Iterator[None]:
    """Marks .venv while packages change: a killed pip may leave half of one behind."""
    checkout.unfinished.touch()
    try:
        yield
    except subprocess.CalledProcessError:
        checkout.unfinished.unlink()  # pip said no, and took back what it had done
        raise
    checkout.unfinished.unlink()


def is_built(checkout: Checkout) -> bool:
    """Whether .venv was finished, here, and its interpreter still exists."""
    stamp = checkout.stamp("venv")
    return (
        checkout.python.exists()
        and not checkout.unfinished.exists()
        and stamp.exists()
        and stamp.read_text() == str(checkout.venv)
    )


def is_installed(checkout: Checkout, name: str) -> bool:
    """Whether this profile, or a larger one, is installed as the files now say."""
    wanted, digest = PROFILES[name], checkout.digest()
    return is_built(checkout) and any(
        profile.covers(wanted)
        and checkout.stamp(other).exists()
        and checkout.stamp(other).read_text() == digest
        for other, profile in PROFILES.items()
    )


def install(checkout: Checkout, profile: Profile) -> None:
    pinned = ["--constraint", str(checkout.constraints)]
    # `--group` and `--build-constraint` are younger than the pip of many systems.
    pip(checkout, "install", "--upgrade", *pinned, "pip>=25.3")
    what = ["--editable", f"{checkout.root}{extras(checkout) * profile.has_extras}"]
    for group in sorted(profile.groups):
        what += ["--group", f"{checkout.project}:{group}"]
    build_pinned = ["--build-constraint", str(checkout.constraints)]
    pip(checkout, "install", *pinned, *build_pinned, *what)


def extras(checkout: Checkout) -> str:
    project = tomllib.loads(checkout.project.read_text())["project"]
    names = sorted(project.get("optional-dependencies", ()))
    return f"[{','.join(names)}]" if names else ""


def pip(checkout: Checkout, *arguments: str) -> None:
    run(checkout.python, "-m", "pip", "--quiet", *arguments)


def build(checkout: Checkout, base: Path) -> None:
    """Makes a .venv that has pip, in the first way that works on this machine."""
    reasons = []
    for name, way in WAYS.items():
        shutil.rmtree(checkout.venv, ignore_errors=True)
        try:
            way(checkout, base)
            run(checkout.python, "-m", "pip", "--version", is_quiet=True)
        except (pip_wheel.NotHere, OSError, subprocess.SubprocessError) as error:
            reasons.append(f"  {name}: {why(error)}")
        else:
            return
    shutil.rmtree(checkout.venv, ignore_errors=True)
    sys.exit(
        "headway: no way to make .venv worked:\n" + "\n".join(reasons) + "\n"
        "The system package python3-venv (or python3-pip) would help; "
        "so would PIP_INDEX_URL naming a package index."
    )


def with_ensurepip(checkout: Checkout, base: Path) -> None:
    run(base, "-m", "venv", checkout.venv, is_quiet=True)


def with_host_pip(checkout: Checkout, base: Path) -> None:
    bare_venv(checkout, base)
    target = ["--python", str(checkout.python)]
    run(base, "-m", "pip", *target, "install", "--quiet", "pip", is_quiet=True)


def with_uv(checkout: Checkout, base: Path) -> None:
    uv = on_path("uv")
    run(uv, "venv", "--seed", "--python", base, checkout.venv, is_quiet=True)


def with_virtualenv(checkout: Checkout, base: Path) -> None:
    run(on_path("virtualenv"), "--python", base, checkout.venv, is_quiet=True)


def with_system_wheel(checkout: Checkout, base: Path) -> None:
    with_wheel(checkout, base, pip_wheel.from_system)


def with_apt(checkout: Checkout, base: Path) -> None:
    with_wheel(checkout, base, pip_wheel.from_apt)


def with_index(checkout: Checkout, base: Path) -> None:
    def fetch(folder: Path) -> Path:
        return pip_wheel.from_index(folder, checkout.constraints)

    with_wheel(checkout, base, fetch)


def with_wheel(checkout: Checkout, base: Path, fetch: Callable[[Path], Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        wheel = fetch(Path(folder))
        bare_venv(checkout, base)
        # A pip wheel can be run as it lies, and so installs itself.
        itself = (wheel / "pip", "install", "--quiet", "--no-index", wheel)
        run(checkout.python, *itself, is_quiet=True)


WAYS: dict[str, Callable[[Checkout, Path], None]] = {
    "python -m venv": with_ensurepip,
    "venv and the pip of this Python": with_host_pip,
    "uv": with_uv,
    "virtualenv": with_virtualenv,
    "venv and the system's pip wheel": with_system_wheel,
    "venv and apt-get download": with_apt,
    "venv and the package index": with_index,
}
"""Ways to a .venv with pip: the cheapest and most likely first."""


def bare_venv(checkout: Checkout, base: Path) -> None:
    run(base, "-m", "venv", "--without-pip", checkout.venv, is_quiet=True)


def on_path(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise pip_wheel.NotHere("not on PATH")
    return found


def run(*command: str | Path, is_quiet: bool = False) -> None:
    environment = {**os.environ, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for name in ("PIP_TARGET", "PIP_PREFIX", "PYTHONHOME", "PYTHONPATH"):
        environment.pop(name, None)
    arguments: Sequence[str] = [str(part) for part in command]
    subprocess.run(
        arguments, env=environment, check=True, capture_output=is_quiet, text=True
    )


def why(error: Exception) -> str:
    """The last line of what a command said, or the error itself."""
    if isinstance(error, subprocess.CalledProcessError):
        lines = f"{error.stdout or ''}\n{error.stderr or ''}".strip().splitlines()
        return lines[-1] if lines else f"exit code {error.returncode}"
    return str(error)


def write_stamp(stamp: Path, text: str) -> None:
    draft = stamp.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(stamp)


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Holds the checkout for this process; the lock goes with the process."""
    with file.open() as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another make in this checkout")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    print(f"headway: {text}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> None:
    if len(arguments) != 1 or arguments[0] not in PROFILES:
        sys.exit(f"usage: python -m tools.bootstrap {'|'.join(PROFILES)}")
    try:
        prepare(Checkout(ROOT), arguments[0])
    except subprocess.CalledProcessError as error:
        sys.exit(f"headway: the set-up failed: {why(error)}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main(sys.argv[1:])
