"""What the examples of docs/http-reference.md have from earlier answers."""

import json
import subprocess
from pathlib import Path
from threading import Event
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.server.signing import SECRET, signed

SERVER = "http://127.0.0.1:8080"


def ask(method: str, path: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    request = Request(SERVER + path, data, headers, method=method)
    with urlopen(request) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def enqueue(queue: str, count: int, **said: object) -> list[str]:
    body = [{"kind": "send_mail", "tenant": "acme", **said}] * count
    found = ask("POST", f"/v1/queues/{queue}/jobs", body)["jobs"]
    return [job["id"] for job in found]


def lease(queue: str, count: int) -> list[str]:
    found = ask("POST", "/v1/lease", {"queues": [queue], "max": count})["jobs"]
    return [job["token"] for job in found]


enqueue("mail", 9)
tokens = lease("mail", 9)
(done,) = enqueue("mail", 1, result="1h")
ask("POST", "/v1/ack", {"tokens": lease("mail", 1)})
(dead,) = enqueue("mail", 1)
(token,) = lease("mail", 1)
ask("POST", "/v1/nack", {"jobs": [{"token": token, "error": "x", "bury": True}]})
job, other = enqueue("mail", 2)
enqueue("scrap", 1)
number = ask("POST", "/v1/queues/scrap/purge", {})["id"]
schedule = {"cron": "0 6 * * *", "job": {"kind": "report"}}
ask("PUT", "/v1/queues/mail/schedules/old", schedule)
records = []
for _ in range(2):
    ask("POST", "/record", {"payload": "hey"})
    records.append(ask("GET", "/record")["id"])
ask("POST", "/record", {"payload": "hey"})

for _ in range(600):  # until the index is there
    try:
        timeline = ask("GET", f"/v1/jobs/{dead}/timeline")
    except HTTPError:
        timeline = {}
    if "bury" in str(timeline):
        break
    Event().wait(0.1)


def add_source(name: str, key: str, path: str) -> None:
    """A partner; the server takes notice of it in a moment."""
    wish = ["--name", name, "--queue", "mail", "--key", key, "--secret-from", "-"]
    subprocess.run(
        ["headway", "callback", "add", *wish],
        input=SECRET,
        text=True,
        check=True,
    )
    body = b'{"order": 1}'
    for turn in range(600):
        headers = {
            name.replace("_", "-"): value
            for name, value in signed(SECRET, body, name=f"first-{turn}").items()
        }
        try:
            with urlopen(Request(SERVER + path, body, headers)):
                return
        except HTTPError as error:
            if error.code != 401:
                raise
        Event().wait(0.1)
    raise AssertionError(f"{name} is not known")


add_source("carrier", "order-{value.order}", "/v1/callbacks/carrier")
add_source("parcels", "parcel-{url}", "/v1/callbacks/parcels/1")

SIGN = """
import re, sys
from tests.server.signing import SECRET, signed
body = re.search(r"-d '(.*)'", sys.argv[1])[1]
made = signed(SECRET, body.encode(), name=f"message-{sys.argv[2]}")
print(*made.values(), sep="\\n")
"""
Path("sign.py").write_text(SIGN)
Path("tokens").write_text("".join(f"{one}\n" for one in tokens))
Path("records").write_text("".join(f"{one}\n" for one in records))
named = {"job": job, "other": other, "done": done, "dead": dead, "number": number}
lines = [f"{name}={value}" for name, value in named.items()]
taken = "$(sed -n 1p {0}s; sed -i 1d {0}s)"
lines += [
    f"case $BLOCK in *\\${one}*) {one}={taken.format(one)};; esac"
    for one in ("token", "record")
]
lines.append(
    "case $BLOCK in */callbacks/*) "
    "{ read -r message; read -r time; read -r signature; } "
    '< <("$PYTHON" sign.py "$BLOCK" $$);; esac'
)
Path("page.sh").write_text("\n".join(lines) + "\n")
