"""Memory of a server's objects in pages of 2 MB.

Here nothing is done about it: that takes machine code. `headway compile` makes some of
arenas.c, which stands in for this module then.
"""


def use() -> bool:
    """Objects made from here on are in large pages, where the system has some.

    Whether anything is done. A second call changes nothing.
    """
    return False
