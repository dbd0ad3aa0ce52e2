"""What docs/integrations.md takes for granted: an app, and the least of a Django site."""

from pathlib import Path

import headway

app = headway.App("memory:")
Path("shop").mkdir()
Path("shop/__init__.py").touch()
