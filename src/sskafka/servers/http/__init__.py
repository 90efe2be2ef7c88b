"""The HTTP server: a child process of the broker, so that no HTTP request ever takes a turn of the broker's event loop.

    broker process                                   child process (nice 5)
    supervisor.py: starts the child on the port      __main__.py, process.py: uvicorn on that port
      that is bound, and again when it dies          app.py: FastAPI, guard.py, problems.py
    servers/local: the private socket  <---------->  context.py: what every route works with
    servers/kafka: the Kafka listeners <---------->  sskafka.client: data and administration

Data and administration go over the Kafka listeners like any client's; what clients cannot ask (readiness, counters)
goes over the private socket. The broker's process imports supervisor.py and configuration.py alone, so FastAPI costs it
neither time nor memory; nothing else in this package may be imported there.

How to add routes: one file in routes/ with

    def routes(context: HttpContext) -> APIRouter

and one row in app.ROUTES. Handlers raise `Problem` (a status and a `detail`), or let KafkaError and ClientError pass:
problems.py gives each its status. A route for the active controller alone takes `dependencies=[leader_only(context)]`.
What the broker itself must tell is a new row in servers/local/answers.py, asked with `context.link.ask`.
"""
