"""Type hints for mypyc that Python does not have: machine integers, and classes that interpreted code may subclass.

Type checkers and mypyc see the definitions of mypy_extensions. At run time nothing of that package is needed: `i64` is
`int`, and the decorator does nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import i64, mypyc_attr
else:
    i64 = int

    def mypyc_attr(**_attributes):
        return lambda cls: cls


__all__ = ["i64", "mypyc_attr"]
