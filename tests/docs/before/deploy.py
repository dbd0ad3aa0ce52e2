"""What whoever installs a node has made before."""

from pathlib import Path

Path("store").write_text("postgresql://headway@localhost/jobs")
Path("tokens.json").write_text("{}")
Path("node.env").write_text("ADDRESS=10.0.0.5\n")
