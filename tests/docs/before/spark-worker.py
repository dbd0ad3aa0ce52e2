"""An app with a bulk queue that has work."""

import sys
from pathlib import Path

SHOP = """
import headway

app = headway.App("http://127.0.0.1:8080")


@app.job(queue="bulk")
def encode(number: int) -> None: ...
"""

for query in globals()["spark"].streams.active:
    query.stop()
globals()["spark"].stop()
Path("shop").mkdir()
Path("shop/__init__.py").touch()
Path("shop/jobs.py").write_text(SHOP)
sys.path.insert(0, "")

from shop.jobs import app, encode  # type: ignore  # noqa: E402

encode.enqueue_many([(number,) for number in range(20)])
app.close()
