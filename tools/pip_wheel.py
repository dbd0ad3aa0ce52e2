"""Finds a pip wheel for a Python that came without pip: in the system's own folder,
in a system package that is only unpacked, or on the index that pip is set up for.
"""

import configparser
import hashlib
import html.parser
import json
import os
import re
import shutil
import ssl
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

SYSTEM_FOLDERS = (Path("/usr/share/python-wheels"),)
PACKAGE = "python3-pip-whl"
TIMEOUT_S = 60


class NotHere(Exception):
    """This source has no wheel; the text says why."""


class Link(NamedTuple):
    url: str
    sha256: str
    """Empty where the index names none."""


class Index(NamedTuple):
    url: str
    cert: str | None


def from_system(_folder: Path) -> Path:
    return newest(*SYSTEM_FOLDERS)


def from_apt(folder: Path) -> Path:
    """Needs no root: the package is downloaded and unpacked, never installed."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise NotHere("apt-get or dpkg-deb is not on PATH")
    try:
        apt(folder, "download", PACKAGE)
    except subprocess.CalledProcessError:
        own = [f"Dir::State::Lists={folder}/lists", f"Dir::Cache={folder}/cache"]
        for name in ("lists", "cache"):
            (folder / name).mkdir()
        apt(folder, "update", options=own)
        apt(folder, "download", PACKAGE, options=own)
    for package in folder.glob("*.deb"):
        unpack = ["dpkg-deb", "-x", str(package), str(folder / "unpacked")]
        subprocess.run(unpack, check=True, capture_output=True, text=True)
    return newest(folder / "unpacked" / "usr" / "share" / "python-wheels")


def apt(folder: Path, *command: str, options: list[str] | None = None) -> None:
    flags = [part for option in options or () for part in ("-o", option)]
    subprocess.run(
        ["apt-get", *flags, *command],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        timeout=3 * TIMEOUT_S,
    )


def newest(*folders: Path) -> Path:
    wheels = [wheel for folder in folders for wheel in folder.glob("pip-*.whl")]
    if not wheels:
        raise NotHere("no pip wheel there")
    return max(wheels, key=lambda wheel: numbers(wheel.name))


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def from_index(folder: Path, constraints: Path) -> Path:
    """Downloads the pinned pip from the index that the user's pip is set up for."""
    index = configured_index(os.environ)
    pin = re.search(r"^pip==(\S+)", constraints.read_text(), re.MULTILINE)
    if pin is None:
        raise NotHere(f"{constraints.name} pins no pip")
    name = f"pip-{pin[1]}-py3-none-any.whl"
    page_url = index.url.rstrip("/") + "/pip/"
    link = find_link(*fetch(page_url, index.cert), page_url, name)
    content, _ = fetch(link.url, index.cert)
    if link.sha256 and hashlib.sha256(content).hexdigest() != link.sha256:
        raise NotHere(f"{name} does not match the index's own checksum")
    wheel = folder / name
    wheel.write_bytes(content)
    return wheel


def configured_index(environment: Mapping[str, str]) -> Index:
    """What pip itself would use, as far as somebody set it up."""
    parser = configparser.RawConfigParser()
    parser.read(config_files(environment))
    found = {
        key: parser.get(section, key)
        for section in ("global", "install")
        for key in ("index-url", "cert")
        if parser.has_option(section, key)
    }
    url = environment.get("PIP_INDEX_URL") or found.get("index-url")
    if not url:
        raise NotHere("neither PIP_INDEX_URL nor pip.conf names one")
    return Index(url, environment.get("PIP_CERT") or found.get("cert"))


def config_files(environment: Mapping[str, str]) -> list[Path]:
    """pip's own order: the later file wins."""
    own = environment.get("PIP_CONFIG_FILE", "")
    if own == os.devnull:
        return []
    home = Path(environment.get("HOME") or "/")
    config_home = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    files = [
        Path("/etc/pip.conf"),
        home / ".pip" / "pip.conf",
        config_home / "pip" / "pip.conf",
    ]
    return [*files, Path(own)] if own else files


def fetch(url: str, cert: str | None) -> tuple[bytes, str]:
    """The content and its type; a name and password in the address are sent along."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in {"http", "https", "file"}:
        raise NotHere(f"{parts.scheme} is not an address this script can read")
    host = parts.netloc.rpartition("@")[2]
    plain_url = urllib.parse.urlunsplit(parts._replace(netloc=host))
    kinds = "application/vnd.pypi.simple.v1+json, text/html;q=0.5, */*;q=0.1"
    context = ssl.create_default_context(cafile=cert)
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
    if parts.username is not None:
        keys = urllib.request.HTTPPasswordMgrWithPriorAuth()
        name, password = (
            urllib.parse.unquote(part or "")
            for part in (parts.username, parts.password)
        )
        keys.add_password(None, plain_url, name, password, is_authenticated=True)
        opener.add_handler(urllib.request.HTTPBasicAuthHandler(keys))
    request = urllib.request.Request(plain_url, headers={"Accept": kinds})
    with opener.open(request, timeout=TIMEOUT_S) as answer:
        return answer.read(), answer.headers.get_content_type()


def find_link(page: bytes, content_type: str, page_url: str, name: str) -> Link:
    """The address of the wheel on an index page, JSON or HTML."""
    links = (
        json_links(page)
        if content_type.endswith("+json")
        else html_links(page.decode())
    )
    for file, url, sha256 in links:
        if file == name:
            return Link(urllib.parse.urljoin(page_url, url), sha256)
    raise NotHere(f"the index has no {name}")


def json_links(page: bytes) -> list[tuple[str, str, str]]:
    return [
        (file["filename"], file["url"], file.get("hashes", {}).get("sha256", ""))
        for file in json.loads(page)["files"]
    ]


def html_links(page: str) -> list[tuple[str, str, str]]:
    parser = Anchors()
    parser.feed(page)
    links = []
    for target in parser.targets:
        url, _, fragment = target.partition("#")
        file = urllib.parse.unquote(url.rpartition("/")[2])
        sha256 = fragment.removeprefix("sha256=") if "sha256=" in fragment else ""
        links.append((file, url, sha256))
    return links


class Anchors(html.parser.HTMLParser):
    """Collects where the links of a page lead."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.targets += [value for key, value in attrs if key == "href" and value]
