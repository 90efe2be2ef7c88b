"""Leader and in-sync replicas of a partition, according to the cluster metadata."""

from sskafka.model.values import value


@value
class Leadership:
    leader_id: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    def is_led_by(self, broker_id: int) -> bool:
        return self.leader_id == broker_id
