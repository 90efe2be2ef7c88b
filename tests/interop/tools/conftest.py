"""One pair of brokers for all commands."""

from differential.conftest import pair

__all__ = ["pair"]
