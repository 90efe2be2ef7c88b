"""A cluster of real brokers with consoles."""

from pathlib import Path

from cluster_processes import ClusterProcesses

from sskafka.model.properties import parse_properties


class ConsoleCluster(ClusterProcesses):
    server_options = ("--http-port", "0", "--no-adr")

    def url(self, node_id: int = 1) -> str:
        """The address of a broker's console. It stays the same when the broker is started again."""
        properties = parse_properties((self.home(node_id) / "server.properties").read_text())
        return f"http://{properties['http.listener']}"


def start_console_cluster(directory: Path, count: int = 3) -> ConsoleCluster:
    """Brokers that a test kills are fenced after a few seconds."""
    settings = {"broker.session.timeout.ms": 4000, "broker.heartbeat.interval.ms": 500}
    cluster = ConsoleCluster(directory, count, settings)
    try:
        return cluster.start()
    except BaseException:
        cluster.close()
        raise
