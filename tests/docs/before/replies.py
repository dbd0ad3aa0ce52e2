"""What docs/replies.md takes for granted: the settings of a bridge."""

from pathlib import Path

Path("kafka.properties").write_text("client.id=headway-bridge\n")
