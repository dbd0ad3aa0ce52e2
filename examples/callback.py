"""A partner answers later, by a signed callback: the job waits and holds no worker."""

import hashlib
import hmac
import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from base64 import b64decode, b64encode
from typing import TypedDict

import headway

HEADWAY = [sys.executable, "-m", "headway.cli.main"]
answered = threading.Event()


class Answer(TypedDict):
    order: int
    status: str


def run(address: str, secret: str) -> None:
    app = headway.App(address)
    calls: list[threading.Thread] = []

    @app.job(queue="orders", timeout="15m")
    def ship(order: int) -> object:
        """Asks the carrier, who calls back when the parcel is on its way."""
        calls.append(threading.Thread(target=carrier, args=(order, address, secret)))
        calls[-1].start()
        return headway.wait_for(f"order-{order}", timeout="10m")

    @ship.on_reply
    def shipped(answer: Answer, order: int) -> None:
        print(f"order {order} is {answer['status']}")
        answered.set()

    ship.enqueue(17)
    while not answered.is_set():
        app.work(until_empty=True)
    for call in calls:
        call.join()
    app.close()


def carrier(order: int, address: str, secret: str) -> None:
    """Somebody else's service: it has a secret and no token."""
    body = json.dumps({"order": order, "status": "on its way"}).encode()
    number, moment = f"msg_{order}", str(int(time.time()))
    signed = f"{number}.{moment}.".encode() + body
    key = b64decode(secret.removeprefix("whsec_"))
    signature = b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    headers = {
        "content-type": "application/json",
        "webhook-id": number,
        "webhook-timestamp": moment,
        "webhook-signature": f"v1,{signature}",
    }
    request = urllib.request.Request(f"{address}/v1/callbacks/carrier", body, headers)
    # Whoever did not hear an answer sends it again: the second one changes nothing.
    for _ in range(2):
        with urllib.request.urlopen(request) as answer:
            print(f"the carrier's call: {json.load(answer)['fate']}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as data:
        source = ["--name", "carrier", "--queue", "orders"]
        add = ["callback", "add", "--data", data, *source]
        made = subprocess.run(
            [*HEADWAY, *add, "--key", "order-{value.order}"],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        with subprocess.Popen(
            [*HEADWAY, "serve", "--data", data, "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stdout is not None
            try:
                run(server.stdout.readline().split()[-1], made.stdout.strip())
            finally:
                server.terminate()
