"""A past for the lake: mail of two tenants, some of it dead."""

import headway

app = headway.App("http://127.0.0.1:8080")
limit = headway.Concurrency("partner", max=30)
app.configure(headway.QueueConfig(name="mail", slo_ms=5_000, limits=(limit,)))


@app.job(queue="mail", attempts=1)
def welcome(number: int) -> None:
    if number % 10 == 0:
        raise TimeoutError("the mail server timed out")


for tenant in ("acme", "globex"):
    jobs = [(number,) for number in range(50)]
    welcome.options(tenant=tenant).enqueue_many(jobs)
app.work(until_empty=True)
app.close()
