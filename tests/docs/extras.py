"""`pip install` as the pages have it: what they ask for must be there to install."""

import re
import sys
import tomllib

from tests.docs.blocks import ROOT


def main(arguments: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert arguments[0] == "install", arguments
    for wanted in arguments[1:]:
        found = re.fullmatch(r"headway(?:\[([\w,]+)\])?|-e|\.(?:\[([\w,]+)\])?", wanted)
        assert found, f"not ours: {wanted}"
        names = (found[1] or found[2] or "").split(",")
        missing = set(filter(None, names)) - set(project["optional-dependencies"])
        assert not missing, f"no such extra: {missing}"


if __name__ == "__main__":
    main(sys.argv[1:])
