"""Two dead letters, of a partner that refused connections."""

import headway

app = headway.App("http://127.0.0.1:8080")


@app.job(queue="orders", attempts=1)
def ship(order: int) -> None:
    raise ConnectionError("connection refused")


ship.enqueue(17)
ship.enqueue(18)
app.work(until_empty=True)
app.close()
