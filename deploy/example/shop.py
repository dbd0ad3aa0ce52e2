"""The app that the worker of compose.yaml runs; put your own in its place."""

import os

import headway

app = headway.App(
    os.environ["HEADWAY_SERVER"], token=os.environ.get("HEADWAY_TOKEN") or None
)


@app.job(queue="mail", slo="5s")
def receipt(order: int) -> str:
    return f"order {order} was paid"
