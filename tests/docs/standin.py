"""Programs that a page may call and a test must not: what they are told is checked.

The files and folders that they are given must be there, and fit to what we ship.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from tests.docs import extras
from tests.docs.blocks import ROOT

DEPLOY = ROOT / "deploy"
HOME = "/opt/headway/bin/"
CONFIGURATION = "/etc/headway/"


def docker(words: list[str]) -> None:
    """Everything that the file mounts from outside is there."""
    assert words[:2] == ["compose", "-f"], words
    assert words[3:] == ["up", "--build", "--detach"], words
    path = Path(words[2])
    found = yaml.safe_load(path.read_text())
    named = [one["file"] for one in found["secrets"].values()]
    for service in found["services"].values():
        files = service.get("env_file", [])
        named += [files] if isinstance(files, str) else files
    assert named
    for one in named:
        assert (path.parent / one).stat().st_size, one


def kubectl(words: list[str]) -> None:
    assert words[:3] == ["create", "secret", "generic"], words
    keys = set()
    for word in words[4:]:
        kind, key, value = word.split("=", 2)
        keys.add(key)
        if kind == "--from-file":
            assert Path(value).stat().st_size, value
        else:
            assert kind == "--from-literal", word
    # What pods look for in it.
    templates = DEPLOY / "helm" / "headway" / "templates"
    text = "".join(one.read_text() for one in templates.glob("*.yaml"))
    for key in keys:
        assert f"key: {key}" in text or f"/{key}" in text, key


def helm(words: list[str]) -> None:
    """The chart has each value that is set."""
    assert words[0] == "install", words
    chart = Path(words[2])
    assert yaml.safe_load((chart / "Chart.yaml").read_text())["name"] == "headway"
    values = yaml.safe_load((chart / "values.yaml").read_text())
    for word in words[3:]:
        if word == "--set":
            continue
        place = values
        *parts, last = word.partition("=")[0].split(".")
        for part in parts:
            place = place[part]
        assert last in place, word


def sudo(words: list[str]) -> None:
    assert words[:2] == ["chown", "-R"], words
    user = words[2].partition(":")[0]
    assert f"--uid {user}" in (DEPLOY / "Dockerfile").read_text(), user
    assert Path(words[3]).is_dir(), words


def useradd(words: list[str]) -> None:
    for unit in (DEPLOY / "systemd").glob("*.service"):
        assert f"User={words[-1]}\n" in unit.read_text(), unit


def install(words: list[str]) -> None:
    files = [word for word in words if not word.startswith("-")]
    if "-d" in words:
        assert files[-1] == CONFIGURATION.rstrip("/"), words
        return
    # Behind -m and -g is what they are to be.
    for name in files[words.count("-m") + words.count("-g") : -1]:
        assert Path(name).stat().st_size, name


def systemctl(words: list[str]) -> None:
    assert words[:2] == ["enable", "--now"], words
    for word in words[2:]:
        name, at, instance = word.partition("@")
        assert (DEPLOY / "systemd" / f"{name}{at}.service").exists(), word
        assert not at or instance.isdigit(), word


def python3(words: list[str]) -> None:
    if words[:2] != ["-m", "venv"]:
        subprocess.run([sys.executable, *words], check=True)


def headway(words: list[str]) -> None:
    """It runs, with the files that were to be installed."""
    here = [word.replace(CONFIGURATION, "") for word in words]
    subprocess.run(["headway", *here], check=True)


PROGRAMS: Mapping[str, Callable[[list[str]], None]] = {
    "docker": docker,
    "kubectl": kubectl,
    "helm": helm,
    "sudo": sudo,
    "useradd": useradd,
    "install": install,
    "systemctl": systemctl,
    "python3": python3,
    "pip": extras.main,
    f"{HOME}pip": extras.main,
    f"{HOME}headway": headway,
}


def functions() -> str:
    """For a shell: each of them as a function of its name."""
    call = '"$PYTHON" -m tests.docs.standin'
    return "".join(f'{name}() {{ {call} {name} "$@"; }}\n' for name in PROGRAMS)


if __name__ == "__main__":
    os.environ["PYTHONUNBUFFERED"] = "1"
    PROGRAMS[sys.argv[1]](sys.argv[2:])
