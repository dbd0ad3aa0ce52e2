"""A report at six every morning, by the clock of Berlin; here every second."""

import os
import signal

import headway

app = headway.App(os.environ.get("HEADWAY_URL", "sqlite:///report.db"))


@app.job(queue="reports", slo="5m")
def report(which: str) -> None:
    print(f"the {which} report is written")
    os.kill(os.getpid(), signal.SIGTERM)  # a real worker goes on


if __name__ == "__main__":
    app.schedule(
        report, "sales", cron="0 6 * * *", tz="Europe/Berlin", name="every morning"
    )
    app.schedule(report, "test", cron="* * * * * *", name="every second")
    app.work()
    app.close()
