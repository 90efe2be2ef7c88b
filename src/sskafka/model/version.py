"""The version of this software, as clients and brokers are told."""

__version__ = "0.1.0"
