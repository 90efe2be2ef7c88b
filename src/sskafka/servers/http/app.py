"""The FastAPI application: the routes behind the guard."""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from fastapi import APIRouter, FastAPI

from sskafka.model.version import __version__
from sskafka.servers.http.authentication import Authentication
from sskafka.servers.http.configuration import Configuration
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.guard import Guard, read_only_check
from sskafka.servers.http.problems import PROBLEM_RESPONSES, handle_problems
from sskafka.servers.http.routes import (
    adr,
    broker_load,
    cluster_health,
    console,
    data,
    dead_letters,
    docs,
    events,
    group_changes,
    group_details,
    groups,
    health,
    history,
    metadata,
    operations,
    pipelines,
    quorum,
    record_scans,
    record_writes,
    records,
    schemas,
    segments,
    settings,
    topic_changes,
    topic_details,
    topic_replicas,
    topics,
    transactions,
)

Routes = Callable[[HttpContext], APIRouter]

ROUTES: tuple[Routes, ...] = (
    health.routes,
    topics.routes,
    data.routes,
    adr.routes,
    groups.routes,
    cluster_health.routes,
    broker_load.routes,
    history.routes,
    events.routes,
    topic_details.routes,
    topic_replicas.routes,
    topic_changes.routes,
    settings.routes,
    quorum.routes,
    group_changes.routes,  # before the details: the id of a group may contain slashes
    group_details.routes,
    transactions.routes,
    transactions.producer_routes,
    record_scans.routes,
    record_writes.routes,
    records.routes,
    records.raw_routes,
    schemas.routes,
    segments.routes,
    metadata.routes,
    pipelines.routes,
    dead_letters.routes,
    operations.routes,
    docs.routes,
    console.routes,
)
CONTROLLER_ROUTES: tuple[Routes, ...] = (health.routes, operations.routes, docs.routes)
"""The routes of a node that is only a controller."""


def _routes_of(configuration: Configuration) -> tuple[Routes, ...]:
    if not configuration.is_broker:
        return CONTROLLER_ROUTES
    more = (partial(import_module(name).routes, **arguments) for name, arguments in configuration.route_modules.items())
    return (*ROUTES, *more)


def build_app(context: HttpContext) -> FastAPI:
    app = FastAPI(
        title="SSKafka",
        version=__version__,
        description="The HTTP server of a broker: topics, records, the quorum, and the broker's state.",
        docs_url=None,
        redoc_url=None,
        responses=PROBLEM_RESPONSES,
        dependencies=[read_only_check(context)],
    )
    for routes in _routes_of(context.configuration):
        app.include_router(routes(context))
    handle_problems(app)
    app.add_middleware(Authentication, security=context.configuration.security, link=context.link)
    app.add_middleware(Guard, allowed_hosts=frozenset(context.configuration.allowed_hosts))
    return app
