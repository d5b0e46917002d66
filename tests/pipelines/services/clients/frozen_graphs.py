"""Frozen TensorFlow graphs, written byte by byte: what a file of EDSR weights looks like, with one layer."""

import numpy as np


def write_number(number: int) -> bytes:
    number &= (1 << 64) - 1
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])


def write_message(field: int, payload: bytes) -> bytes:
    return write_number(field << 3 | 2) + write_number(len(payload)) + payload


def write_int(field: int, number: int) -> bytes:
    return write_number(field << 3) + write_number(number)


def write_shape(sides) -> bytes:
    return b"".join(write_message(2, write_int(1, side)) for side in sides)


def write_node(name: str, kind: str, inputs=(), **attributes: bytes) -> bytes:
    body = write_message(1, name.encode()) + write_message(2, kind.encode())
    body += b"".join(write_message(3, name.encode()) for name in inputs)
    for key, value in attributes.items():
        body += write_message(5, write_message(1, key.encode()) + write_message(2, value))
    return write_message(1, body)


FLOAT, INT = write_int(6, 1), write_int(6, 3)
NHWC = write_message(2, b"NHWC")


def write_constant(name: str, values: np.ndarray) -> bytes:
    kind = {"float32": 1, "int32": 3}[values.dtype.name]
    tensor = write_int(1, kind) + write_message(2, write_shape(values.shape)) + write_message(4, values.tobytes())
    return write_node(name, "Const", dtype=write_int(6, kind), value=write_message(8, tensor))


def write_graph(scale: int, colours: int = 3, turned: bool = True) -> bytes:
    """Return a network that repeats each pixel ``scale`` times across and down.

    Args:
        scale: factor.
        colours: channels of the result; 3 for a picture.
        turned: end in the transposition to channels first that the published graphs end in.
    """
    weights = np.zeros((3, 3, 3, colours * scale * scale), np.float32)
    for place in range(scale * scale):
        for colour in range(min(3, colours)):
            weights[1, 1, colour, place * colours + colour] = 1
    graph = write_node("input", "Placeholder", dtype=FLOAT, shape=write_message(7, write_shape((-1, -1, -1, 3))))
    graph += write_constant("weights", weights)
    strides = write_message(1, write_message(3, b"\x01\x01\x01\x01"))
    padding = write_message(2, b"SAME")
    graph += write_node(
        "conv", "Conv2D", ("input", "weights"), T=FLOAT, strides=strides, padding=padding, data_format=NHWC
    )
    if scale > 1:
        size = write_int(3, scale)
        graph += write_node("shuffled", "DepthToSpace", ("conv",), T=FLOAT, block_size=size, data_format=NHWC)
    if turned:
        graph += write_constant("order", np.array([0, 3, 1, 2], np.int32))
        last = "shuffled" if scale > 1 else "conv"
        graph += write_node("NCHW_output", "Transpose", (last, "order"), T=FLOAT, Tperm=INT)
    return graph
