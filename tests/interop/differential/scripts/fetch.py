"""Fetch: offsets, sizes, sessions, isolation, epochs, and requests that are wrong."""

from typing import Any

from differential.scripts.batches import batch
from differential.scripts.common import UNKNOWN_ID, create_topic, fill, produce_fields
from differential.session import Session


def fetch_fields(topic: str, topic_id: bytes, *partitions: dict[str, Any], **more: Any) -> dict[str, Any]:
    wanted = [{"partition_max_bytes": 100_000, **one} for one in partitions]
    return {
        "max_wait_ms": 0,
        "max_bytes": 1_000_000,
        "topics": [{"topic": topic, "topic_id": topic_id, "partitions": wanted}],
        **more,
    }


def filled(session: Session, word: str) -> tuple[str, bytes]:
    topic = session.name(word)
    topic_id = create_topic(session, topic, 2)
    for number in range(5):
        fill(session, topic, topic_id, f"a{number}", f"b{number}")
    return topic, topic_id


def offsets_and_sizes(session: Session) -> None:
    topic, topic_id = filled(session, "offsets")
    for offset in (0, 1, 5, 9, 10, 11, 1000, -1, -2):
        session.ask_each(
            "Fetch", **fetch_fields(topic, topic_id, {"partition": 0, "fetch_offset": offset}), note=f"offset {offset}"
        )
    for size in (0, 1, 100, 250, -1):
        session.ask_each(
            "Fetch",
            **fetch_fields(topic, topic_id, {"partition": 0, "partition_max_bytes": size}),
            note=f"{size} bytes a partition",
        )
        session.ask_each(
            "Fetch", **fetch_fields(topic, topic_id, {"partition": 0}, max_bytes=size), note=f"{size} bytes a request"
        )
    for isolation in (0, 1, 2, -1):
        session.ask(
            "Fetch",
            **fetch_fields(topic, topic_id, {"partition": 0}, isolation_level=isolation),
            note=f"isolation {isolation}",
        )
    for wait, size in ((0, 1_000_000), (50, 1_000_000), (-1, 1), (50, -1)):
        session.ask(
            "Fetch",
            **fetch_fields(topic, topic_id, {"partition": 0, "fetch_offset": 10}, max_wait_ms=wait, min_bytes=size),
            note=f"waits {wait} ms for {size} bytes",
        )


def wrong_targets(session: Session) -> None:
    topic, topic_id = filled(session, "targets")
    session.ask_each(
        "Fetch",
        **fetch_fields(topic, topic_id, {"partition": 0}, {"partition": 7}, {"partition": -1}),
        note="unknown partitions",
    )
    session.ask_each("Fetch", **fetch_fields(session.name("none"), UNKNOWN_ID, {"partition": 0}), note="unknown topic")
    session.ask_each("Fetch", **fetch_fields("bad/name", bytes(16), {"partition": 0}), note="bad name, no id")
    session.ask_each(
        "Fetch", **fetch_fields(topic, topic_id, {"partition": 0}, {"partition": 0}), note="a partition twice"
    )
    unknown_first = fetch_fields(session.name("none"), UNKNOWN_ID, {"partition": 0})
    unknown_first["topics"] += fetch_fields(topic, topic_id, {"partition": 0}, {"partition": 7})["topics"]
    session.ask_each("Fetch", **unknown_first, note="an unknown topic before a known one")
    session.ask_each("Fetch", max_wait_ms=0, topics=[], note="no topics")
    session.ask_each("Fetch", **fetch_fields(topic, topic_id), note="no partitions")
    for epoch in (-1, 0, 5, -2):
        session.ask_each(
            "Fetch",
            **fetch_fields(topic, topic_id, {"partition": 0, "current_leader_epoch": epoch}),
            note=f"leader epoch {epoch}",
        )
    for epoch in (0, 1, 5):
        session.ask_each(
            "Fetch",
            **fetch_fields(topic, topic_id, {"partition": 0, "fetch_offset": 4, "last_fetched_epoch": epoch}),
            note=f"last fetched epoch {epoch}",
        )
    for version in session.versions("Fetch"):
        for replica in (1, 77, -2, -3):
            who = {"replica_id": replica} if version < 15 else {"replica_state": {"replica_id": replica}}
            session.ask(
                "Fetch",
                version=version,
                **fetch_fields(topic, topic_id, {"partition": 0}, **who),
                note=f"as replica {replica}",
            )
    session.ask(
        "Fetch",
        **fetch_fields(topic, topic_id, {"partition": 0}, cluster_id="not-this-cluster"),
        note="another cluster",
    )
    session.ask("Fetch", **fetch_fields(topic, topic_id, {"partition": 0}, rack_id="rack-1"), note="a rack")


def sessions(session: Session) -> None:
    topic, topic_id = filled(session, "sessions")
    for version in session.versions("Fetch"):
        if version < 7:
            continue

        def ask(
            note: str, session_id: int, epoch: int, *partitions: dict[str, Any], version: int = version, **more: Any
        ) -> Any:
            fields = fetch_fields(topic, topic_id, *partitions, session_id=session_id, session_epoch=epoch, **more)
            if not partitions:
                fields["topics"] = []
            return session.ask("Fetch", version=version, on="1b", note=note, **fields)

        opened = ask("opens a session", 0, 0, {"partition": 0}, {"partition": 1})
        number = opened.session_id
        ask("nothing new asked", number, 1)
        ask("the same epoch again", number, 1)
        ask("the next", number, 2)
        ask("an epoch too far", number, 9)
        ask("a changed offset", number, 3, {"partition": 0, "fetch_offset": 8})
        fill(session, topic, topic_id, "later", partition=1)
        ask("news in partition 1", number, 4)
        ask(
            "forgets partition 1",
            number,
            5,
            forgotten_topics_data=[{"topic": topic, "topic_id": topic_id, "partitions": [1]}],
        )
        ask("after that", number, 6)
        ask("a session that does not exist", 12345, 1)
        ask("a session that does not exist, epoch 0", 12345, 0, {"partition": 0})
        ask("closes", number, -1)
        ask("after closing", number, 7)
        empty = ask("opens a session without partitions", 0, 0)
        ask("still without partitions", empty.session_id, 1)
        ask("after that session", empty.session_id, 2, {"partition": 0})
        single = ask("opens a session with one partition", 0, 0, {"partition": 0})
        only = [{"topic": topic, "topic_id": topic_id, "partitions": [0]}]
        ask("forgets its only partition", single.session_id, 1, forgotten_topics_data=only)
        ask("after it forgot", single.session_id, 2, {"partition": 0})


def requests_without_topic(session: Session) -> None:
    """The zero topic id names no topic. Whether a session is opened shows in the next one's number."""
    topic, topic_id = filled(session, "no-topic")
    for version in session.versions("Fetch"):
        if version < 13:
            continue
        for note, partitions in (("one partition", (0,)), ("two partitions", (0, 1)), ("one twice", (0, 0))):
            wanted = fetch_fields("", bytes(16), *({"partition": number} for number in partitions))
            session.ask("Fetch", version=version, **wanted, session_epoch=0, note=f"no topic, {note}")
            wanted = fetch_fields(topic, topic_id, {"partition": 0}, session_epoch=0)
            session.ask("Fetch", version=version, **wanted, note="opens a session")


def refused_sessions(session: Session) -> None:
    """A request that is refused as a whole opens no session; the answer has the session id of the request."""
    topic, topic_id = filled(session, "refused")
    for version in session.versions("Fetch"):
        if version < 7:
            continue
        for number in (0, 1, 7):
            wanted = fetch_fields(topic, topic_id, {"partition": 0}, session_id=number, session_epoch=0)
            session.ask("Fetch", version=version, **wanted, isolation_level=5, note=f"isolation 5, session {number}")
            session.ask("Fetch", version=version, **wanted, note="opens a session")


def deleted_topic(session: Session) -> None:
    topic, topic_id = filled(session, "deleted")
    session.look("DeleteTopics", topics=[{"name": topic}], timeout_ms=5000)
    session.ask_each("Fetch", **fetch_fields(topic, topic_id, {"partition": 0}))
    again = create_topic(session, topic)
    session.ask_each("Fetch", **fetch_fields(topic, topic_id, {"partition": 0}), note="its name exists again")
    session.ask("Fetch", **fetch_fields(topic, again, {"partition": 0}), note="the new one")
    session.ask_each("Produce", **produce_fields(topic, topic_id, batch("x")), note="to the old id")
