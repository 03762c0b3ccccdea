# SPDX-License-Identifier: GPL-2.0
"""python_stubs.py FILE: do the stubs have each name that the module has, and no other?"""

import ast
import sys

import twheel._twheel as module


def public(names):
    return {name for name in names if not name.startswith("_")}


def in_stubs(body):
    """Names, and those of each class"""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node.name
            if not any(getattr(base, "id", "") == "NamedTuple" for base in node.bases):
                yield from (f"{node.name}.{each}" for each in in_stubs(node.body))
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and node.annotation.id != "TypeAlias":
            yield node.target.id


def in_module():
    for name, value in vars(module).items():
        yield name
        if isinstance(value, type) and not issubclass(value, (tuple, OSError)):
            yield from (f"{name}.{each}" for each in public(vars(value)))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        wanted = {name for name in in_stubs(ast.parse(file.read()).body)
                  if "._" not in name and not name.startswith("_")}
    have = public(in_module())
    if wanted != have:
        sys.exit(f"only in the stubs: {wanted - have}; only in the module: {have - wanted}")


main()
