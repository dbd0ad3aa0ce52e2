"""One customer uploads a large file; the small one does not wait behind it."""

import os

import headway

app = headway.App(os.environ.get("HEADWAY_URL", "sqlite:///import.db"))
done: list[str] = []


@app.job(queue="import", slo="30s", tenant=lambda customer, row: customer)
def import_row(customer: str, row: int) -> None:
    done.append(customer)


if __name__ == "__main__":
    import_row.enqueue_many([("large", row) for row in range(1_000)], progress=True)
    import_row.enqueue_many([("small", row) for row in range(3)])
    app.work(until_empty=True, concurrency=1)
    app.close()
    last = max(place for place, customer in enumerate(done, 1) if customer == "small")
    print(f"{len(done)} rows imported; the small customer's last was number {last}")
