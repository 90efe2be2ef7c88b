"""As replica_run.py, with an idempotent producer for each partition whose batches must be in the log once, in order."""

from collections.abc import Callable

from replica_brokers import ReplicaBroker
from replica_cluster import TOPIC_ID
from replica_invariants import read_values, require
from replica_run import FAULTS_MS, Run, leads, run_noted
from replica_writer import IdempotentWriter

PRODUCER_ID = 4000


class WriterRun(Run):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.writers = [
            IdempotentWriter(self.time, index, PRODUCER_ID + index, lambda index=index: self._leaders(index))
            for index in range(self.partitions)
        ]

    def _possible_faults(self) -> tuple[Callable[[], None], ...]:
        """Without deleted records: a replica that begins behind them does not know their producers, as in Kafka."""
        return tuple(fault for fault in super()._possible_faults() if fault != self._delete_records)

    def _leaders(self, index: int) -> list[ReplicaBroker]:
        return [broker for broker in self.cluster.brokers.values() if leads(broker, index)]

    def _produce_later(self) -> None:
        """Also after the faults, until everything is acknowledged."""
        if self.time.elapsed_ms < FAULTS_MS or not all(writer.is_idle for writer in self.writers):
            self.time.call_later(self.random.uniform(0.001, 0.02), self._produce)

    def _produce(self) -> None:
        for writer in self.writers:
            if self.time.elapsed_ms < FAULTS_MS:
                writer.write(self.random.randint(1, 3))
            writer.step(self.random.choice)
        self._produce_later()

    def _check_health(self) -> None:
        super()._check_health()
        for index, writer in enumerate(self.writers):
            require(writer.is_idle, "healed", "some batches are never acknowledged")
            for replica in self.cluster.controller.state(index).isr:
                partition = self.cluster.brokers[replica].partition(TOPIC_ID, index)
                writer.check(read_values(partition, 0, partition.high_watermark))


def run_writer_seed(seed: int) -> WriterRun:
    return run_noted(WriterRun(seed))
