"""An application that enqueues until it is told that it can't, under strace."""

import os
import sys

import headway


def tell(word: object) -> None:
    os.write(1, f"{word}\n".encode())


def main(path: str) -> None:
    queue = headway.open(path)
    try:
        for _ in range(90):
            tell(queue.enqueue("mail", b"x"))
    except headway.OwnerStopped as error:
        tell(f"OwnerStopped: {error}")
    queue.counts("mail")
    tell("goes on")
    queue.close()
    tell("closed")


if __name__ == "__main__":
    main(sys.argv[1])
