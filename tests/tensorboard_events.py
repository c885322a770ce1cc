"""Event files, read record by record as TensorBoard does."""

import struct

from tensorboardX.proto.event_pb2 import Event
from tensorboardX.record_writer import masked_crc32c


def events(path):
    left = path.read_bytes()
    while left:
        (length,) = struct.unpack("<Q", left[:8])
        data = left[12 : 12 + length]
        sums = struct.pack("<I", masked_crc32c(left[:8])), struct.pack("<I", masked_crc32c(data))
        assert sums == (left[8:12], left[12 + length : 16 + length])
        yield Event.FromString(data)
        left = left[16 + length :]


def points(folder):
    """(name, step, value) of all event files of a folder."""
    return [
        (value.tag, one.step, value.simple_value)
        for path in sorted(folder.iterdir())
        for one in events(path)
        for value in one.summary.value
    ]
