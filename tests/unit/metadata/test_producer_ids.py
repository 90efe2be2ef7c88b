from metadata_clusters import cluster, decided

from sskafka.metadata.producer_ids import PRODUCER_ID_MAX, allocate_producer_ids
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest


def test_blocks_never_overlap() -> None:
    image = cluster()
    request = AllocateProducerIdsRequest(1, image.brokers[1].epoch)
    blocks = [decided(image, allocate_producer_ids(image, request)) for _ in range(3)]
    assert [(block.producer_id_start, block.producer_id_len) for block in blocks] == [
        (0, 1000),
        (1000, 1000),
        (2000, 1000),
    ]


def test_requests_with_an_old_broker_epoch_are_rejected() -> None:
    image = cluster()
    stale = AllocateProducerIdsRequest(1, image.brokers[1].epoch - 1)
    assert allocate_producer_ids(image, stale).response.error_code == ErrorCode.STALE_BROKER_EPOCH
    unknown = AllocateProducerIdsRequest(9, 0)
    assert allocate_producer_ids(image, unknown).response.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_ids_run_out_without_wrapping() -> None:
    image = cluster()
    image.next_producer_id = PRODUCER_ID_MAX - 10
    decision = allocate_producer_ids(image, AllocateProducerIdsRequest(1, image.brokers[1].epoch))
    assert (decision.response.error_code, list(decision.records)) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
