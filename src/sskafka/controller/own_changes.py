"""Reading one's own writes: whether an image shows what the controller has answered to a request.

The controller answers when a change is committed; the broker that passed the request on learns of the change by itself,
a moment later. It waits that moment before it answers its client, who may ask it about the topic next.
"""

from sskafka.metadata.image import ClusterImage
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from sskafka.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from sskafka.wire.messages.delete_topics import DeleteTopicsResponse
from sskafka.wire.schema import Message


def shows(image: ClusterImage, request: Message, response: Message) -> bool:
    match request, response:
        case CreateTopicsRequest(validate_only=False), CreateTopicsResponse(topics=topics):
            created = [topic.topic_id for topic in topics if topic.error_code == ErrorCode.NONE]
            return all(topic_id in image.topics_by_id for topic_id in created)
        case _, DeleteTopicsResponse(responses=topics):
            deleted = [topic.topic_id for topic in topics if topic.error_code == ErrorCode.NONE]
            return not any(topic_id in image.topics_by_id for topic_id in deleted)
        case CreatePartitionsRequest(validate_only=False), CreatePartitionsResponse(results=results):
            grown = {result.name for result in results if result.error_code == ErrorCode.NONE}
            return all(_has(image, topic.name, topic.count) for topic in request.topics if topic.name in grown)
        case _:
            return True


def _has(image: ClusterImage, name: str, partitions: int) -> bool:
    """A topic that is gone by now will not grow any more."""
    topic = image.topics_by_name.get(name)
    return topic is None or len(topic.partitions) >= partitions
