from sskafka.client.cluster_status import BrokerStatus, DirectoryUsage, MachineStatus, machines_of


def broker(node_id: int, address: str, *, is_fenced: bool = False) -> BrokerStatus:
    usage = DirectoryUsage("/data", 100, None, None, has_failed=False)
    return BrokerStatus(node_id, address, "rack", is_fenced, node_id == 1, 2, 3, (usage,))


def test_brokers_of_one_machine_are_taken_together() -> None:
    brokers = [broker(1, "a:1"), broker(2, "b:1"), broker(1001, "a:2", is_fenced=True), broker(1002, "b:2")]
    assert machines_of(brokers) == [
        MachineStatus("a", "rack", (1, 1001), 1, 4, 6, 200),
        MachineStatus("b", "rack", (2, 1002), 0, 4, 6, 200),
    ]


def test_brokers_that_only_share_a_host_or_an_id_are_machines_of_their_own() -> None:
    assert machines_of([broker(1, "a:1"), broker(2, "a:2"), broker(1001, "b:1")]) == []
