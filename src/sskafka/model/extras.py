"""How to install a part of SSKafka that a plain installation leaves out."""


def install_extra(extra: str) -> str:
    """Return the commands that install it from a package index and from a checkout."""
    return f"pip install 'sskafka[{extra}]', or in a checkout pip install '.[{extra}]'"
