"""Heavy work waits for the night; what is urgent does not."""

import os

import headway

app = headway.App(os.environ.get("HEADWAY_URL", "sqlite:///night.db"))


@app.job(queue="index", windows="22:00-06:00 Europe/Berlin", cost=5)
def rebuild(index: str) -> None:
    print(f"rebuilt {index}")


@app.job(queue="index")
def patch(index: str) -> None:
    print(f"patched {index}")


if __name__ == "__main__":
    rebuild.enqueue("products")
    patch.enqueue("products")
    app.work(until_empty=True)  # by day the rebuild stays scheduled
    app.close()
