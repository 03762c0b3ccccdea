# SPDX-License-Identifier: LGPL-2.1-or-later
"""
What pyproject.toml can't say: the module in C, what belongs to the package, and the
version, which is the library's.

TWHEEL_LIBRARY is the name of the library to link with; where it is, and its headers, say
CFLAGS and LDFLAGS, unless it is installed.
"""

import os
import pathlib
import re

from setuptools import Extension, setup

here = pathlib.Path(__file__).resolve().parent
# In the source of the project; a source package has it beside setup.py.
files = here / "PKG-INFO", here / "../../scripts/packaging/version.mk"
file = next((file for file in files if file.exists()), None)
version = file and re.search(r"^Version: (\S+)$|^VERSION := (\S+)$", file.read_text(), re.MULTILINE)
if not version:
    raise SystemExit("no version: neither PKG-INFO nor scripts/packaging/version.mk is there")

setup(
    version=version[1] or version[2],
    packages=["twheel"],
    package_data={"twheel": ["py.typed", "*.pyi"]},
    include_package_data=False,
    ext_modules=[
        Extension(
            "twheel._twheel",
            sorted(str(path.relative_to(here)) for path in here.glob("src/*.c")),
            depends=sorted(str(path.relative_to(here)) for path in here.glob("src/*.h")),
            libraries=[os.environ.get("TWHEEL_LIBRARY", "twheel")],
            extra_compile_args=["-Wall", "-Wextra", "-Wno-missing-field-initializers",
                                "-Wno-cast-function-type"],
        )
    ],
)
