"""Measures brokers from outside: real processes, real sockets, a load generator in C. No part of the package."""
