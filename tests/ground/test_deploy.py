"""What is in deploy/: files that fit each other, and options that there are."""

import ast
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml  # type: ignore[import-untyped]

from headway.cli.main import headway as commands
from headway.server.settings import Settings
from tests.ground import charts

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SERVICE_KEYS = frozenset(
    {
        *("build", "cap_drop", "command", "depends_on", "env_file", "environment"),
        *("healthcheck", "image", "ports", "read_only", "restart", "secrets"),
        *("security_opt", "shm_size", "stop_grace_period", "tmpfs", "volumes"),
    }
)


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def check_command(words: list[str]) -> dict[str, str]:
    """Options of a command line; fails if headway has no such command or option."""
    name, *rest = words
    command = commands.get_command(click.Context(commands), name)
    assert command is not None, f"there is no `headway {name}`"
    known = {
        text: option
        for option in command.params
        if isinstance(option, click.Option)
        for text in option.opts
    }
    given: dict[str, str] = {}
    remaining = iter(rest)
    for word in remaining:
        if not word.startswith("--"):
            continue
        option, has_value, value = word.partition("=")
        assert option in known, f"`headway {name}` has no option {option}"
        is_flag = known[option].is_flag
        given[option] = value if has_value or is_flag else next(remaining)
    return given


def said(command: list[str]) -> tuple[int, str, str]:
    """The status of a command, what it said, and what it complained of."""
    told = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=60
    )
    return told.returncode, told.stdout, told.stderr


def seconds(text: str) -> float:
    assert text.endswith("s")
    return float(text[:-1])


def grace_s() -> float:
    return Settings(data=Path("any")).grace_s


def nodes() -> dict[str, dict[str, Any]]:
    services = compose()["services"]
    return {name: it for name, it in services.items() if name.startswith("node-")}


def test_every_command_of_compose_exists_with_its_options() -> None:
    services = compose()["services"]
    commands = {
        name: it["command"]
        for name, it in services.items()
        if str(it["image"]).startswith("headway")
    }
    assert {"migrate", "worker", "node-1", "node-2", "node-3"} == set(commands)
    for words in commands.values():
        check_command(words)


def test_each_node_of_compose_has_a_name_an_address_and_a_volume_of_its_own() -> None:
    ports = set()
    for name, it in nodes().items():
        given = check_command(it["command"])
        assert given["--node"] == name
        assert given["--advertise"] == f"http://{name}:8080"
        assert given["--store-file"] == "/run/headway/store"
        assert f"{name}:/var/lib/headway" in it["volumes"]
        assert seconds(it["stop_grace_period"]) > 2 * grace_s()
        ports |= set(it["ports"])
    assert len(ports) == len(nodes()) == 3
    assert all(str(port).startswith("127.0.0.1:") for port in ports)


def test_compose_names_nothing_that_it_does_not_have() -> None:
    whole = compose()
    services, volumes = whole["services"], set(whole["volumes"])
    for name, it in services.items():
        assert set(it) <= SERVICE_KEYS, name
        assert set(it.get("depends_on", {})) <= set(services), name
        assert set(it.get("secrets", [])) <= set(whole["secrets"]), name
        for volume in it.get("volumes", []):
            source = volume.partition(":")[0]
            assert source.startswith("./") or source in volumes, name
        for condition in it.get("depends_on", {}).values():
            assert condition["condition"] in {
                "service_healthy",
                "service_completed_successfully",
            }
    used = {v.partition(":")[0] for it in services.values() for v in it["volumes"]}
    assert volumes <= used
    assert whole["x-node"]["build"]["dockerfile"] == "deploy/Dockerfile"
    assert (DEPLOY / "Dockerfile").is_file()


def test_the_worker_of_compose_finds_its_app() -> None:
    words = compose()["services"]["worker"]["command"]
    module, _, name = words[1].partition(":")
    tree = ast.parse((DEPLOY / "example" / f"{module}.py").read_text())
    made = [x.targets[0] for x in tree.body if isinstance(x, ast.Assign)]
    assert name in [target.id for target in made if isinstance(target, ast.Name)]


def test_the_image_installs_the_checkout_and_runs_as_nobody_special() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    steps = re.findall(r"^([A-Z]+) ", text, re.MULTILINE)
    assert steps[0] == "FROM"
    assert "'.[postgres,compile]'" in text
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)
    assert "/readyz" in text[text.index("HEALTHCHECK") :]
    command = json.loads(re.findall(r"^CMD (\[.+\])$", text, re.MULTILINE)[-1])
    check_command(command)
    kept = (ROOT / ".dockerignore").read_text().split()
    for source in re.findall(r"^COPY (?!--)(.+) \S+$", text, re.MULTILINE):
        for name in source.split():
            assert (ROOT / name).exists(), name
            assert f"!{name}" in kept, name
    # A wheel that is built in there takes files from outside of the package, too.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source in wheel["force-include"]:
        assert f"COPY {source} ./{source}" in text, source


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: str(unit.name))
def test_units_start_a_command_that_exists(unit: Path) -> None:
    text = unit.read_text()
    line = re.findall(r"^ExecStart=(.+)$", text, re.MULTILINE)[0]
    program, *words = shlex.split(line)
    assert program.endswith("/headway")
    given = check_command(words)
    assert ("--node" in given) == ("@" in unit.name)
    # Nothing tells systemd that it is ready.
    assert "Type=exec" in text
    assert "Restart=on-failure" in text
    stop = re.findall(r"^TimeoutStopSec=(.+)$", text, re.MULTILINE)[0]
    assert seconds(stop) > 2 * grace_s()


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: str(unit.name))
def test_systemd_can_read_the_units(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    # A program that exists, or that it does not would be all that is said.
    text = unit.read_text().replace("/opt/headway/bin/headway", "/bin/true")
    copy = tmp_path / unit.name.replace("@.", "@8081.")
    copy.write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", str(copy)]
    assert said(command) == (0, "", "")


def test_the_chart_uses_every_value_and_names_no_other() -> None:
    given = charts.values()
    used: set[str] = set()
    included: set[str] = set()
    defined: set[str] = set()
    for template in charts.templates():
        text = template.read_text()
        for name in charts.VALUE.findall(text):
            charts.look_up(f".Values{name}", given)
            used.add(name.removeprefix("."))
        included |= set(charts.INCLUDED.findall(text))
        defined |= set(charts.DEFINED.findall(text))
    assert included == defined
    for name in charts.paths(given):
        assert any(name == one or name.startswith(f"{one}.") for one in used), name


def check_objects(objects: list[dict[str, Any]]) -> None:
    by_kind = {one["kind"]: one for one in objects}
    names = {one["metadata"]["name"] for one in objects if one["kind"] == "Service"}
    whole = by_kind["StatefulSet"]["spec"]
    assert whole["serviceName"] in names
    pod = whole["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > 2 * grace_s()
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert whole["selector"]["matchLabels"] == whole["template"]["metadata"]["labels"]
    (server,) = pod["containers"]
    given = check_command(server["args"])
    assert given["--node"] == "$(NODE)"
    assert whole["serviceName"] in given["--advertise"]
    assert server["env"][0]["name"] == "NODE"
    for probe, path in (
        ("startupProbe", "/livez"),
        ("livenessProbe", "/livez"),
        ("readinessProbe", "/readyz"),
    ):
        assert server[probe]["httpGet"]["path"] == path
    check_command(pod["initContainers"][0]["args"])
    volumes = {one["name"] for one in pod["volumes"]}
    volumes |= {one["metadata"]["name"] for one in whole["volumeClaimTemplates"]}
    for container in [server, *pod["initContainers"]]:
        assert {one["name"] for one in container["volumeMounts"]} <= volumes
    secret = by_kind["Secret"]
    assert set(secret["stringData"]) == {"store", "tokens.json"}
    assert pod["volumes"][0]["secret"]["secretName"] == secret["metadata"]["name"]
    budget = by_kind["PodDisruptionBudget"]["spec"]
    assert budget["maxUnavailable"] == 1
    assert by_kind["ServiceMonitor"]["spec"]["endpoints"][0]["port"] == "http"


def test_the_chart_filled_in_is_what_kubernetes_expects() -> None:
    given = charts.values()
    objects = [
        made
        for template in charts.templates()
        if template.suffix == ".yaml"
        for made in charts.filled(template, given)
    ]
    check_objects(objects)


def test_helm_renders_the_chart_the_same() -> None:
    if shutil.which("helm") is None:
        pytest.skip("there is no helm here")
    settings = "store=postgresql://db/jobs,tokens=none,serviceMonitor.enabled=true"
    more = "allowHosts={jobs.example},serviceMonitor.tokenSecret=prometheus"
    command = ["helm", "template", "r1", str(charts.CHART), "--set", settings]
    status, output, error = said([*command, "--set", more])
    assert status == 0, error
    check_objects([one for one in yaml.safe_load_all(output) if one is not None])
    lint = ["helm", "lint", "--strict", str(charts.CHART), "--set", settings]
    assert said(lint)[0] == 0
