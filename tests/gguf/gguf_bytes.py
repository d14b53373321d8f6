"""A byte-level GGUF writer that writes what it is told, right or wrong. Standard library only.

G puts a file together from KV and TI records; every count, the version and the alignment can be set to anything.
"""
import struct

U8, I8, U16, I16, U32T, I32T, F32T, BOOL, STR, ARRAY, U64T, I64T, F64T = range(13)  # value types
F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 = 0, 1, 2, 3, 6, 7, 8  # tensor types
Q2_K, Q4_K, Q5_K, Q6_K, IQ4_XS, BF16 = 10, 12, 13, 14, 23, 30

FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32T: "I", I32T: "i", F32T: "f", BOOL: "?", U64T: "Q", I64T: "q", F64T: "d"}


def U32(v):
    return struct.pack("<I", v & 0xFFFFFFFF)


def U64(v):
    return struct.pack("<Q", v & 0xFFFFFFFFFFFFFFFF)


def raw(s):
    return s.encode() if isinstance(s, str) else bytes(s)


def S(s, length=None):
    """A string; length may lie."""
    b = raw(s)
    return U64(len(b) if length is None else length) + b


def VAL(type_, v):
    """The bytes of one value: numbers by type, strings, bytes as they are."""
    if isinstance(v, bytes) and type_ != STR:
        return v
    return S(v) if type_ == STR else struct.pack("<" + FORMATS[type_], v)


def ARR(elem, items, count=None):
    """The bytes of an array's value; count may lie."""
    return U32(elem) + U64(len(items) if count is None else count) + b"".join(VAL(elem, v) for v in items)


def KV(key, type_, v):
    """A key-value record; the value of an ARRAY is what ARR gives."""
    return S(key) + U32(type_) + VAL(type_, v)


def TI(name, dims, type_, offset, n_dims=None):
    """A record of the tensor directory."""
    return (S(name) + U32(len(dims) if n_dims is None else n_dims) + b"".join(U64(d) for d in dims) + U32(type_) + U64(offset))


def pad(data, alignment=32):
    return data + b"\0" * (-len(data) % alignment)


def G(kvs=(), tensors=(), data=b"", version=3, magic=b"GGUF", n_kv=None, n_tensors=None, alignment=32):
    """A whole file. The data section is aligned when there are tensors or data."""
    head = magic + U32(version) + U64(len(tensors) if n_tensors is None else n_tensors)
    head += U64(len(kvs) if n_kv is None else n_kv) + b"".join(kvs) + b"".join(tensors)
    return pad(head, alignment) + data if tensors or data else head


ARCH = KV("general.architecture", STR, "llama")
