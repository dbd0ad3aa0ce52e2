"""A partner answers later, by HTTP callback: the job waits and holds no worker."""

import json
import os
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TypedDict

import headway

app = headway.App(os.environ.get("HEADWAY_URL", "sqlite:///callback.db"))
answered = threading.Event()


class Answer(TypedDict):
    order: int
    status: str


@app.job(queue="orders", timeout="15m")
def ship(order: int, callback: str) -> object:
    """Asks the carrier, who calls back when the parcel is on its way."""
    threading.Thread(target=carrier, args=(order, callback)).start()
    return headway.wait_for(f"order-{order}", timeout="10m")


@ship.on_reply
def shipped(answer: Answer, order: int, callback: str) -> None:
    print(f"order {order} is {answer['status']}")
    answered.set()


class Callback(BaseHTTPRequestHandler):
    """What the carrier calls: each answer finds its job by its key."""

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        answer: Answer = json.loads(self.rfile.read(length))
        app.reply("orders", f"order-{answer['order']}", answer)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is written for each call."""


def carrier(order: int, callback: str) -> None:
    """Somebody else's service."""
    body = json.dumps({"order": order, "status": "on its way"}).encode()
    urllib.request.urlopen(urllib.request.Request(callback, body)).close()


if __name__ == "__main__":
    with HTTPServer(("127.0.0.1", 0), Callback) as server:
        threading.Thread(target=server.serve_forever).start()
        ship.enqueue(17, f"http://127.0.0.1:{server.server_port}/")
        while not answered.is_set():
            app.work(until_empty=True)
        server.shutdown()
    app.close()
