"""The HTTP server: a child process of the broker, so that HTTP requests never take a turn of the broker's event loop.

    broker process                                   child process (nice 5)
    supervisor.py: starts the child on the port      __main__.py, process.py: uvicorn on that port
      that is bound, and again when it dies          app.py: FastAPI, guard.py, problems.py
    servers/local: the private socket  <---------->  context.py: what every route works with
    servers/kafka: the Kafka listeners <---------->  sskafka.client: data and administration

Data and administration use the Kafka listeners like any client. Requests that the Kafka protocol does not have
(readiness, counters) use the private socket. The broker process imports only supervisor.py and configuration.py, so
FastAPI costs it neither time nor memory; it must import nothing else of this package.

To add routes, write a file in routes/ with

    def routes(context: HttpContext) -> APIRouter

and add a row to app.ROUTES. Handlers raise `Problem` (a status and a `detail`), or let KafkaError and ClientError
propagate: problems.py maps each to its status. A route that only the active controller serves takes
`dependencies=[leader_only(context)]`. For an answer of the broker itself, add a row to servers/local/answers.py and
call `context.link.ask`.

The folder console/ has the static files of the console, which routes/console.py serves. Its README says how to add a
page. The pages use the routes under /api/v1: GET shows something, every other method changes something, and
`console.read.only` (guard.py) refuses the latter.
"""
