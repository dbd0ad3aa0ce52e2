"""How the set-up decides; no test here needs a network or makes an environment."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import bootstrap, pip_wheel
from tools.bootstrap import Checkout

FIND_PYTHON = Path(__file__).resolve().parents[2] / "tools" / "find-python"
WHEEL = "pip-26.1-py3-none-any.whl"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[project.optional-dependencies]\nb = []\na = []\n'
    )
    (tmp_path / "constraints.txt").write_text("click==8.5.1\npip==26.1\n")
    return Checkout(tmp_path)


@pytest.fixture
def calls(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the set-up did, with the slow parts replaced by a record of them."""
    done: list[str] = []

    def build(checkout: Checkout, _base: Path) -> None:
        shutil.rmtree(checkout.venv, ignore_errors=True)
        checkout.python.parent.mkdir(parents=True)
        checkout.python.touch()
        done.append("build")

    def pip(_checkout: Checkout, *arguments: str) -> None:
        done.append(" ".join(arguments).replace(str(checkout.root), "ROOT"))

    monkeypatch.setattr(bootstrap, "build", build)
    monkeypatch.setattr(bootstrap, "pip", pip)
    return done


def test_second_call_installs_nothing(checkout: Checkout, calls: list[str]) -> None:
    bootstrap.prepare(checkout, "test")
    assert calls[0] == "build"
    assert len(calls) == 3
    bootstrap.prepare(checkout, "test")
    assert len(calls) == 3


def test_run_installs_the_plain_package_only(
    checkout: Checkout, calls: list[str]
) -> None:
    bootstrap.prepare(checkout, "run")
    assert calls[-1].endswith("--editable ROOT")


def test_test_installs_every_extra_and_its_group(
    checkout: Checkout, calls: list[str]
) -> None:
    bootstrap.prepare(checkout, "test")
    assert "--constraint ROOT/constraints.txt" in calls[-1]
    groups = "--group ROOT/pyproject.toml:docs --group ROOT/pyproject.toml:test"
    assert calls[-1].endswith(f"--editable ROOT[a,b] {groups}")


def test_pipeline_installs_extras_and_no_tools(
    checkout: Checkout, calls: list[str]
) -> None:
    bootstrap.prepare(checkout, "pipeline")
    assert calls[-1].endswith("--editable ROOT[a,b]")
    bootstrap.prepare(checkout, "run")
    assert len(calls) == 3


def test_larger_profile_covers_smaller_ones(
    checkout: Checkout, calls: list[str]
) -> None:
    bootstrap.prepare(checkout, "check")
    count = len(calls)
    bootstrap.prepare(checkout, "test")
    bootstrap.prepare(checkout, "run")
    assert len(calls) == count
    bootstrap.prepare(checkout, "bench")
    assert len(calls) > count


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_changed_file_installs_again_but_keeps_the_environment(
    checkout: Checkout, calls: list[str], name: str
) -> None:
    bootstrap.prepare(checkout, "run")
    with (checkout.root / name).open("a") as file:
        file.write("# changed\n")
    bootstrap.prepare(checkout, "run")
    assert calls.count("build") == 1
    assert len(calls) == 5


def test_refused_install_is_tried_again(
    checkout: Checkout, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = subprocess.CalledProcessError(1, "pip")
    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "pip", failing(refused))
        with pytest.raises(subprocess.CalledProcessError):
            bootstrap.prepare(checkout, "run")
    bootstrap.prepare(checkout, "run")
    assert calls.count("build") == 1
    assert len(calls) == 3


def test_killed_install_is_begun_from_scratch(
    checkout: Checkout, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "pip", failing(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            bootstrap.prepare(checkout, "run")
    bootstrap.prepare(checkout, "run")
    assert calls.count("build") == 2
    assert bootstrap.is_installed(checkout, "run")


def test_moved_checkout_is_built_again(
    checkout: Checkout, calls: list[str], tmp_path: Path
) -> None:
    bootstrap.prepare(checkout, "run")
    checkout.venv.rename(tmp_path / "kept")
    moved = Checkout(tmp_path / "moved")
    moved.root.mkdir()
    (tmp_path / "kept").rename(moved.venv)
    for file in (checkout.project, checkout.constraints):
        file.rename(moved.root / file.name)
    assert not bootstrap.is_built(moved)
    assert calls[0] == "build"


def test_first_way_that_works_is_taken(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    ways: dict[str, Callable[[Checkout, Path], None]] = {
        "broken": failing(subprocess.CalledProcessError(1, "", stderr="no ensurepip")),
        "missing": failing(pip_wheel.NotHere("not on PATH")),
        "good": lambda _checkout, _base: tried.append("good"),
        "never": lambda _checkout, _base: tried.append("never"),
    }
    monkeypatch.setattr(bootstrap, "WAYS", ways)
    monkeypatch.setattr(bootstrap, "run", lambda *_, **__: None)
    bootstrap.build(checkout, Path("python3"))
    assert tried == ["good"]


def test_no_way_at_all_names_every_reason_and_the_package_that_helps(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = subprocess.CalledProcessError(1, "", stderr="one\nno ensurepip")
    monkeypatch.setattr(bootstrap, "WAYS", {"python -m venv": failing(reason)})
    with pytest.raises(SystemExit) as stop:
        bootstrap.build(checkout, Path("python3"))
    assert "python -m venv: no ensurepip" in str(stop.value)
    assert "python3-venv" in str(stop.value)
    assert not checkout.venv.exists()


def test_newest_wheel_wins(tmp_path: Path) -> None:
    for version in ("9.0.1", "23.0.1", "22.3"):
        (tmp_path / f"pip-{version}-py3-none-any.whl").touch()
    assert pip_wheel.newest(tmp_path).name == "pip-23.0.1-py3-none-any.whl"
    with pytest.raises(pip_wheel.NotHere):
        pip_wheel.newest(tmp_path / "nowhere")


def test_index_comes_from_the_environment_before_the_files(tmp_path: Path) -> None:
    config = tmp_path / "own.conf"
    config.write_text("[global]\nindex-url = https://a.example/simple\ncert = c.pem\n")
    files = {"PIP_CONFIG_FILE": str(config), "HOME": str(tmp_path)}
    assert pip_wheel.configured_index(files)[0] == "https://a.example/simple"
    named = {**files, "PIP_INDEX_URL": "https://b.example/simple", "PIP_CERT": "d.pem"}
    assert pip_wheel.configured_index(named) == ("https://b.example/simple", "d.pem")


def test_wheel_is_found_on_both_kinds_of_index_page() -> None:
    page_url = "https://a.example/simple/pip/"
    html = f'<a href="../../files/{WHEEL}#sha256=ab">{WHEEL}</a>'.encode()
    file = {"filename": WHEEL, "url": f"/files/{WHEEL}", "hashes": {"sha256": "ab"}}
    page = json.dumps({"files": [file]}).encode()
    expected = pip_wheel.Link(f"https://a.example/files/{WHEEL}", "ab")
    kind = "application/vnd.pypi.simple.v1+json"
    assert pip_wheel.find_link(html, "text/html", page_url, WHEEL) == expected
    assert pip_wheel.find_link(page, kind, page_url, WHEEL) == expected
    with pytest.raises(pip_wheel.NotHere):
        pip_wheel.find_link(html, "text/html", page_url, "pip-1.0-py3-none-any.whl")


@pytest.mark.parametrize("is_sound", [True, False])
def test_downloaded_wheel_must_match_its_checksum(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, is_sound: bool
) -> None:
    index = checkout.root / "simple"
    (index / "pip").mkdir(parents=True)
    sha256 = hashlib.sha256(b"wheel" if is_sound else b"other").hexdigest()
    pages = {
        f"{index.as_uri()}/pip/": f'<a href="{WHEEL}#sha256={sha256}">x</a>'.encode(),
        f"{index.as_uri()}/pip/{WHEEL}": b"wheel",
    }
    monkeypatch.setattr(pip_wheel, "fetch", lambda url, _: (pages[url], "text/html"))
    monkeypatch.setenv("PIP_INDEX_URL", index.as_uri())
    if is_sound:
        wheel = pip_wheel.from_index(checkout.root, checkout.constraints)
        assert wheel.read_bytes() == b"wheel"
    else:
        with pytest.raises(pip_wheel.NotHere, match="checksum"):
            pip_wheel.from_index(checkout.root, checkout.constraints)


def test_old_python_is_passed_over_and_refused_with_a_line(tmp_path: Path) -> None:
    def fake(name: str, exit_code: int) -> None:
        script = (
            f'#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.1\nexit {exit_code}\n'
        )
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)

    def find(*named: str) -> subprocess.CompletedProcess[str]:
        command = ["/bin/sh", str(FIND_PYTHON), *named]
        environment = {"PATH": str(tmp_path)}
        return subprocess.run(
            command, env=environment, check=False, capture_output=True, text=True
        )

    fake("python3", 1)
    refused = find()
    assert refused.returncode == 1
    assert "needs Python 3.11 or newer; found: Python 3.9.1" in refused.stderr
    fake("python3.12", 0)
    assert find().stdout.strip() == str(tmp_path / "python3.12")
    assert find("python3").returncode == 1


def failing(error: BaseException) -> Callable[..., None]:
    def fail(*_arguments: object) -> None:
        raise error

    return fail
