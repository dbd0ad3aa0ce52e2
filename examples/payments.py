"""Payments start within 5 seconds, mail within a minute, whatever else is waiting."""

import os

import headway

app = headway.App(os.environ.get("HEADWAY_URL", "sqlite:///payments.db"))


class CardRefused(Exception):
    """The bank said no, and will not change its mind."""


def when_it_fails(
    job: object, error: BaseException, attempt: int
) -> headway.Retry | headway.Bury:
    """A refused card is final; anything else is tried again, a little later each time."""
    if isinstance(error, CardRefused):
        return headway.Bury(f"refused: {error}")
    return headway.Retry(in_=f"{attempt}s")


@app.job(queue="payments", slo="5s", timeout="30s", retry=when_it_fails)
def charge(order: int, cents: int) -> None:
    if cents > 100_000:
        raise CardRefused(f"order {order} is too much")
    print(f"charged order {order}: {cents / 100:.2f}")
    receipt.enqueue(order)


@app.job(queue="mail", slo="1m")
async def receipt(order: int) -> None:
    print(f"sent the receipt of order {order}")


if __name__ == "__main__":
    charge.enqueue(1, 990)
    charge.options(priority=1).enqueue(2, cents=1_990)
    charge.enqueue(3, 200_000)
    app.work(until_empty=True)
    app.close()
