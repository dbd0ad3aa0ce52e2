"""A node that never looks whether its lease goes on: `headway`, with a bug planted."""

from headway.cli.main import main
from headway.server.cluster.atlas import Atlas


def always(self: Atlas) -> bool:
    """Whatever `self` knows."""
    return True


if __name__ == "__main__":
    Atlas.is_valid = always  # type: ignore[method-assign]
    main()
