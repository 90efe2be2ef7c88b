from sskafka.replication.fetch_session import EPOCH_MAX, FetchSessionHandler, PartitionFetchData

A, B = (b"a" * 16, 0), (b"b" * 16, 3)


def asked(offset: int) -> PartitionFetchData:
    return PartitionFetchData(leader_epoch=1, fetch_offset=offset, last_fetched_epoch=1, log_start_offset=0)


def test_the_first_request_names_everything() -> None:
    session = FetchSessionHandler(1000)
    topics, forgotten = session.build_request({A: asked(5), B: asked(7)}, [])
    assert [(topic.topic_id, topic.partitions[0].fetch_offset) for topic in topics] == [(A[0], 5), (B[0], 7)]
    assert topics[1].partitions[0].partition_max_bytes == 1000
    assert forgotten == []


def test_later_ones_name_what_changed() -> None:
    session = FetchSessionHandler(1000)
    session.build_request({A: asked(5), B: asked(7)}, [])
    session.answered(99)
    topics, forgotten = session.build_request({A: asked(5), B: asked(8)}, [])
    assert (session.session_id, session.epoch) == (99, 1)
    assert [topic.topic_id for topic in topics] == [B[0]]
    assert forgotten == []


def test_what_is_forgotten_and_asked_for_at_once_is_named_twice() -> None:
    session = FetchSessionHandler(1000)
    session.build_request({A: asked(5), B: asked(7)}, [])
    session.answered(99)
    topics, forgotten = session.build_request({A: asked(5)}, [A])
    assert [topic.topic_id for topic in topics] == [A[0]]
    assert [(topic.topic_id, topic.partitions) for topic in forgotten] == [(A[0], [0])]


def test_only_what_the_leader_knows_is_forgotten() -> None:
    session = FetchSessionHandler(1000)
    session.build_request({A: asked(5)}, [])
    session.answered(99)
    assert session.build_request({}, [A, B])[1][0].topic_id == A[0]
    assert session.known == {}


def test_after_a_loss_everything_is_named_again_and_the_old_session_closed() -> None:
    session = FetchSessionHandler(1000)
    session.build_request({A: asked(5), B: asked(7)}, [])
    session.answered(99)
    session.lost()
    assert (session.session_id, session.epoch) == (99, 0)
    assert len(session.build_request({A: asked(5), B: asked(7)}, [])[0]) == 2


def test_without_a_session_every_request_is_full() -> None:
    session = FetchSessionHandler(1000)
    session.build_request({A: asked(5)}, [])
    session.answered(0)
    assert session.is_full


def test_epochs_wrap_to_one() -> None:
    session = FetchSessionHandler(1000)
    session.answered(99)
    session.epoch = EPOCH_MAX
    session.answered(99)
    assert session.epoch == 1
