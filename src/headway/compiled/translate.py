"""`python -m headway.compiled.translate FOLDER`: what `build` runs in a process apart."""

import os
import sys
from pathlib import Path

from mypyc.build import mypycify
from setuptools import Distribution
from setuptools.command.build_ext import build_ext

from headway.compiled import LIBRARY, MODULES


def translate(work: Path) -> None:
    """Modules to C, and C to a library and the modules that are names in it."""
    sources = [f"{module.replace('.', os.sep)}.py" for module in MODULES]
    options = [f"--cache-dir={work / 'cache'}", "--ignore-missing-imports"]
    extensions = mypycify(
        [*options, *sources],
        opt_level="3",
        debug_level="0",
        group_name=LIBRARY.removesuffix("__mypyc"),
        target_dir=str(work / "c"),
    )
    for extension in extensions:
        # A warning of another compiler is no reason to go without.
        told = extension.extra_compile_args
        extension.extra_compile_args = [flag for flag in told if flag != "-Werror"]
    command = build_ext(Distribution({"name": "headway", "ext_modules": extensions}))
    command.build_lib = str(work / "lib")
    command.build_temp = str(work / "objects")
    command.ensure_finalized()
    command.run()


if __name__ == "__main__":
    translate(Path(sys.argv[1]))
