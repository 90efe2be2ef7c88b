"""The version of this software, which clients and brokers send."""

__version__ = "0.1.0"
