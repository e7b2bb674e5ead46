#!/usr/bin/env python3
"""Computes golden.json from inputs.json, without any code of agentop's.

XXH3 is written from its specification, for 64 bits and seed 0; what counts in
a body is written from the package comment of agents/outline.
Usage: python3 golden.py < inputs.json > golden.json
"""
import codecs
import json
import struct
import sys

M = (1 << 64) - 1
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MX1, MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
SECRET = bytes.fromhex(  # the default one of the specification
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248e"
    "e03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d"
    "8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc"
    "8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
r32 = lambda b, i: struct.unpack_from("<I", b, i)[0]
r64 = lambda b, i: struct.unpack_from("<Q", b, i)[0]
swap = lambda x: int.from_bytes(x.to_bytes(8, "little"), "big")


def fold(a, b):
    p = a * b
    return (p & M) ^ (p >> 64)


def avalanche(h):
    h ^= h >> 37
    h = h * MX1 & M
    return h ^ h >> 32


def avalanche64(h):
    h ^= h >> 33
    h = h * P2 & M
    h ^= h >> 29
    h = h * P3 & M
    return h ^ h >> 32


def mix16(b, i, s):
    return fold(r64(b, i) ^ r64(SECRET, s), r64(b, i + 8) ^ r64(SECRET, s + 8))


def xxh3(b):
    n = len(b)
    if n == 0:
        return avalanche64(r64(SECRET, 56) ^ r64(SECRET, 64))
    if n <= 3:
        c = b[0] << 16 | b[n >> 1] << 24 | b[n - 1] | n << 8
        return avalanche64(c ^ r32(SECRET, 0) ^ r32(SECRET, 4))
    if n <= 8:
        k = (r32(b, n - 4) + (r32(b, 0) << 32)) ^ r64(SECRET, 8) ^ r64(SECRET, 16)
        rot = lambda x, r: (x << r | x >> 64 - r) & M
        k ^= rot(k, 49) ^ rot(k, 24)
        k = k * MX2 & M
        k ^= (k >> 35) + n
        k = k * MX2 & M
        return k ^ k >> 28
    if n <= 16:
        lo = r64(b, 0) ^ r64(SECRET, 24) ^ r64(SECRET, 32)
        hi = r64(b, n - 8) ^ r64(SECRET, 40) ^ r64(SECRET, 48)
        return avalanche((n + swap(lo) + hi + fold(lo, hi)) & M)
    if n <= 128:
        acc = n * P1
        for i in range((n - 1) // 32, -1, -1):
            acc += mix16(b, 16 * i, 32 * i) + mix16(b, n - 16 * (i + 1), 32 * i + 16)
        return avalanche(acc & M)
    if n <= 240:
        acc = n * P1
        for i in range(8):
            acc += mix16(b, 16 * i, 16 * i)
        acc = avalanche(acc & M)
        for i in range(8, n // 16):
            acc += mix16(b, 16 * i, 16 * (i - 8) + 3)
        return avalanche((acc + mix16(b, n - 16, 136 - 17)) & M)
    acc = [P32_3, P1, P2, P3, P4, P32_2, P5, P32_1]

    def stripe(at, s):
        for i in range(8):
            v = r64(b, at + 8 * i)
            k = v ^ r64(SECRET, s + 8 * i)
            acc[i ^ 1] = (acc[i ^ 1] + v) & M
            acc[i] = (acc[i] + (k & 0xFFFFFFFF) * (k >> 32)) & M

    for at in range(0, (n - 1) // 64 * 64, 64):
        stripe(at, at // 64 % 16 * 8)
        if at // 64 % 16 == 15:
            for i in range(8):
                acc[i] = (acc[i] ^ acc[i] >> 47 ^ r64(SECRET, 128 + 8 * i)) * P32_1 & M
    stripe(n - 64, 192 - 64 - 7)
    h = n * P1 & M
    for i in range(4):
        h += fold(acc[2 * i] ^ r64(SECRET, 11 + 16 * i), acc[2 * i + 1] ^ r64(SECRET, 19 + 16 * i))
    return avalanche(h & M)


codecs.register_error("each", lambda e: ("\ufffd", e.start + 1))  # one for each byte, as encoding/json


class Obj(list):
    """An object as its pairs, equal keys and order kept."""

    def last(self, key):
        return next((v for k, v in reversed(self) if k == key), None)

    def all(self, key):
        return [v for k, v in self if k == key]


load = lambda s: json.loads(s, object_pairs_hook=Obj)
is_list = lambda v: isinstance(v, list) and not isinstance(v, Obj)
utf8 = lambda s: "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in s).encode()
H = lambda s: xxh3(utf8(s))

HIDDEN = ("thinking", "redacted_thinking", "reasoning")
SKIP = ("type", "cache_control", "signature", "encrypted_content", "reasoning_content")
hidden = lambda v: isinstance(v, Obj) and v.last("type") in HIDDEN


def strings(v, skip=()):
    """The strings of a value that keys count."""
    if isinstance(v, str):
        return [v]
    if isinstance(v, Obj):
        return [] if hidden(v) else [s for k, w in v if k not in SKIP + skip for s in strings(w)]
    return [s for w in v for s in strings(w)] if is_list(v) else []


def every(v):
    """All strings of a value."""
    if isinstance(v, str):
        return [v]
    if isinstance(v, Obj):
        return [s for _, w in v for s in every(w)]
    return [s for w in v for s in every(w)] if is_list(v) else []


def plain(v):
    """An id, a name, or arguments that are not JSON in a string."""
    return every(v) if v != "" else []


def arguments(v):
    if not isinstance(v, str) or not v:
        return plain(v)
    try:
        return every(load(v))
    except ValueError:
        return [v]


def unbilled(text):
    return text.partition("\n")[2] if text.startswith("x-anthropic-billing-header:") else text


def system(v, billing):
    if not billing:
        return strings(v)
    if isinstance(v, str):
        return [unbilled(v)] if unbilled(v) or not v else []
    out = []
    for block in v if is_list(v) else []:
        text = block.last("text") if isinstance(block, Obj) else None
        if isinstance(text, str) and unbilled(text) != text:
            if unbilled(text):
                out += [unbilled(text)] + strings(block, ("text",))
        else:
            out += strings(block)
    return out


def texts(m):
    out = []
    for c in m.all("content"):
        if isinstance(c, str):
            out.append(c)
        for part in c if is_list(c) else []:
            if isinstance(part, Obj) and part.last("type") in (None, "text", "input_text", "output_text"):
                out.append(part.last("text") or "")
    return [t for t in out if t]


def calls(m):
    out = []
    for c in m.all("content"):
        for part in c if is_list(c) else []:
            if isinstance(part, Obj) and part.last("type") in ("tool_use", "server_tool_use", "mcp_tool_use"):
                out += [s for k, v in part if k in ("id", "name", "input") for s in plain(v)]
    for call in (c for cs in m.all("tool_calls") for c in cs):
        out += plain(call.last("id"))
        f = call.last("function") or call.last("custom")
        out += plain(f.last("name")) + plain(f.last("input")) + arguments(f.last("arguments") or "")
    return out


def item(m):
    kind = m.last("type")
    if kind == "function_call":
        return plain(m.last("call_id")) + plain(m.last("name")) + arguments(m.last("arguments"))
    if kind == "custom_tool_call":
        return plain(m.last("call_id")) + plain(m.last("name")) + plain(m.last("input"))
    return []


def run(case):
    raw = bytes.fromhex(case["hex"]) if "hex" in case else utf8(case["body"])
    body, fmt = load(raw.decode("utf-8", "each")), case["format"]
    prompt = {"messages": "system", "responses": "instructions"}.get(fmt)
    line = body.last("input" if fmt == "responses" else "messages")
    if isinstance(line, str):
        line = [Obj([("role", "user"), ("content", line)])]
    elements, answers, answer = [], [], []
    counted = system(body.last(prompt), fmt == "messages") if prompt else []
    if counted:
        elements.append(sum(map(H, counted)) & M)
    for m in line:
        role, kind = m.last("role"), m.last("type") or ""
        if not hidden(m):
            counted = strings(m, ("id", "role")) + ([role] if isinstance(role, str) else [])
            elements.append(sum(map(H, counted)) & M)
        if fmt != "responses":
            if role == "assistant":
                answers.append(texts(m) + calls(m))
        elif role == "assistant":
            answer += texts(m)
        elif isinstance(role, str) or kind.endswith("_output") or kind.startswith("compaction"):
            answers.append(answer)
            answer = []
        else:
            answer += item(m)
    answers.append(answer)
    key = xxh3(b"agentop prefix 1\0" + case["agent"].encode())
    keys = []
    for e in elements:
        key = xxh3(struct.pack("<QQ", key, e))
        keys.append("%016x" % key)
    replies = [{"mark": "%016x" % (sum(map(H, a)) & M), "bytes": sum(len(utf8(s)) for s in a)} for a in answers]
    return {"name": case["name"], "elements": ["%016x" % e for e in elements], "keys": keys,
            "replies": [r for r in replies if r["bytes"]]}


doc = json.load(sys.stdin)
out = {"hashes": [{"bytes": n, "hash": "%016x" % xxh3(bytes(i * 7 % 251 for i in range(n)))} for n in doc["lengths"]],
       "cases": [run(c) for c in doc["cases"]]}
json.dump(out, sys.stdout, indent=1)
print()
