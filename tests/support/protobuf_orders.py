"""A descriptor set of Protobuf, as protoc would write it, and messages of it.

message Order {
  message Line { string sku = 1; repeated Line parts = 2; }
  int64 id = 1;  string customer = 2;  google.protobuf.Timestamp at = 3;  repeated Line lines = 4;
  State state = 5;  double weight = 6;  map<string, int32> tags = 7;  bytes raw = 8;
}
message Refund { int64 order = 1; }
"""

from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP

TYPES = FieldDescriptorProto
ONE, MANY = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED


def _add(message: DescriptorProto, name: str, number: int, kind: int, label: int = ONE, type_name: str = "") -> None:
    field = message.field.add(name=name, number=number, type=kind, label=label)
    if type_name:
        field.type_name = type_name


def descriptor_set() -> FileDescriptorSet:
    files = FileDescriptorSet()
    file = files.file.add(name="orders.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    order = file.message_type.add(name="Order")
    line = order.nested_type.add(name="Line")
    _add(line, "sku", 1, TYPES.TYPE_STRING)
    _add(line, "parts", 2, TYPES.TYPE_MESSAGE, MANY, ".shop.Order.Line")
    tag = order.nested_type.add(name="TagsEntry")
    tag.options.map_entry = True
    _add(tag, "key", 1, TYPES.TYPE_STRING)
    _add(tag, "value", 2, TYPES.TYPE_INT32)
    _add(order, "id", 1, TYPES.TYPE_INT64)
    _add(order, "customer", 2, TYPES.TYPE_STRING)
    _add(order, "at", 3, TYPES.TYPE_MESSAGE, ONE, ".google.protobuf.Timestamp")
    _add(order, "lines", 4, TYPES.TYPE_MESSAGE, MANY, ".shop.Order.Line")
    _add(order, "state", 5, TYPES.TYPE_ENUM, ONE, ".shop.State")
    _add(order, "weight", 6, TYPES.TYPE_DOUBLE)
    _add(order, "tags", 7, TYPES.TYPE_MESSAGE, MANY, ".shop.Order.TagsEntry")
    _add(order, "raw", 8, TYPES.TYPE_BYTES)
    _add(file.message_type.add(name="Refund"), "order", 1, TYPES.TYPE_INT64)
    state = file.enum_type.add(name="State")
    for number, name in enumerate(("NEW", "PAID")):
        state.value.add(name=name, number=number)
    return files


def _message_class(name: str) -> Any:
    pool = DescriptorPool()
    pool.AddSerializedFile(TIMESTAMP.serialized_pb)
    pool.AddSerializedFile(descriptor_set().file[0].SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(name))


def encoded(name: str = "shop.Order", at_ms: int | None = None, **fields: Any) -> bytes:
    """Return a message; `tags` is a dict, `lines` a list of skus."""
    tags, skus = fields.pop("tags", {}), fields.pop("lines", [])
    message = _message_class(name)(**fields)
    for key, value in tags.items():
        message.tags[key] = value
    for sku in skus:
        message.lines.add(sku=sku)
    if at_ms is not None:
        message.at.FromMilliseconds(at_ms)
    return bytes(message.SerializeToString(deterministic=True))
