"""Benchmarks of brokers: real processes, real sockets, and a load generator in C. Not part of the package."""
