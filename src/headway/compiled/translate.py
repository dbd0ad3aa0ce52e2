"""`python -m headway.compiled.translate FOLDER`: what `build` runs in a process apart."""

import os
import sys
from pathlib import Path

from mypyc.build import mypycify
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

from headway.compiled import BY_HAND, LIBRARY, MODULES


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
    # They know how the others lie in memory, from the header that was written for them.
    extensions += [
        Extension(
            module,
            [str(Path(*module.split(".")).with_suffix(".c"))],
            include_dirs=extensions[0].include_dirs,
            extra_compile_args=extensions[0].extra_compile_args,
            optional=True,
        )
        for module in BY_HAND
    ]
    for extension in extensions:
        # A warning of another compiler is no reason to go without.
        told = extension.extra_compile_args
        extension.extra_compile_args = [flag for flag in told if flag != "-Werror"]
        # Nobody else calls what is in there: else each call is looked up in a table, as
        # it might be another library's, and none is made part of its caller.
        extension.extra_compile_args.append("-fvisibility=hidden")
    command = build_ext(Distribution({"name": "headway", "ext_modules": extensions}))
    command.build_lib = str(work / "lib")
    command.build_temp = str(work / "objects")
    command.ensure_finalized()
    command.run()


if __name__ == "__main__":
    translate(Path(sys.argv[1]))
