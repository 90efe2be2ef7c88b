"""The queries of deploy/: those of the Grafana dashboard and of the alert rules, as Prometheus is asked for them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CONDITION = re.compile(r"\s(?:==|!=|>|<)\s*[\d.]+")
NAME = re.compile(r"\b((?:kafka|sskafka|process|python)_[a-z0-9_]+)\b")
VARIABLES = {"$job": ".*", "$instance": ".*", "$__rate_interval": "1m"}


def dashboard_queries() -> Iterator[tuple[str, str]]:
    """Title and expression of each query, with the variables replaced."""
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for variable, value in VARIABLES.items():
                expression = expression.replace(variable, value)
            yield panel["title"], expression


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((DEPLOY / "prometheus-rules.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def rule_queries() -> Iterator[tuple[str, str]]:
    """Name of each alert, and what it compares with its limits: that exists whether the alert fires or not."""
    for rule in rules():
        yield rule["alert"], CONDITION.sub("", rule["expr"])


def metric_names(expression: str) -> set[str]:
    return set(NAME.findall(expression))
