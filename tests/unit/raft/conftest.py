import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-traces", action="store_true", help="write what the machine does now into the traces")
