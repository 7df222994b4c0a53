# SPDX-License-Identifier: Apache-2.0
"""The contract of paled: every operation of its OpenAPI file keeps its word, and nothing that can be sent to it does harm.

Generated from GET /openapi.json. Every answer must be well-formed HTTP and told within a bound; bad input gets a 4xx problem with a code of
the closed list, never a 5xx; and the daemon must be the same process before and after. Point PALE_BUILD at a folder whose paled is built
with sanitizers to run it against that: whatever those complain about is in the daemon's log, which is looked at in the end."""
import json
import random
import re
import select
import socket
import subprocess
import threading
import time

import pytest

from harness import wait_until
from operations import ENDLESS, GOOD, MAKES, METHODS, Scene, operations
from rest import CODES, Wire, check_problem, exchange, request_bytes

WAIT = 20
pytestmark = [pytest.mark.limit(240), pytest.mark.once, pytest.mark.sanitized]


class World:
    def __init__(self, daemon, project):
        self.daemon, self.api, self.where = daemon, daemon.rest, daemon.socket
        self.openapi = self.api.good("GET", "/openapi.json")
        self.ops = {o.name: o for o in operations(self.openapi)}
        self.scene = Scene(self.api, project=project)

    def request(self, name):
        return GOOD[name](self.ops[name], self.scene)

    def refused(self, data, why, statuses=range(400, 500)):
        """Sends it and holds the answer to the rules; then the connection must be closed, or of further use."""
        with Wire(self.where, WAIT) as w:
            w.send(data)
            a = w.answer()
            assert a, f"no answer: {why}: {data[:300]!r}"
            assert a.status in statuses, (why, a, data[:300])
            check_problem(a)
            if a.header("connection") == "close":
                assert w.ended(), why
            else:
                w.send(request_bytes("GET", "/v1/health"))
                after = w.answer()
                assert after and after.status == 200, (why, a, after)
        return a


@pytest.fixture(scope="module")
def world(shared_daemon, project_dir):
    return World(shared_daemon[0], project_dir)


@pytest.fixture(autouse=True)
def same_daemon(world):
    before = world.daemon.pid_pair()
    yield
    assert world.daemon.pid_pair() == before, world.daemon.text_of_log()[-3000:]
    assert "ERROR: AddressSanitizer" not in world.daemon.text_of_log() and "runtime error" not in world.daemon.text_of_log()


# --- schemas ---

TYPES = {"string": str, "boolean": bool, "array": list, "object": dict, "number": (int, float), "integer": int}


def is_type(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def check_schema(openapi, schema, value, where="answer"):
    """The subset of JSON Schema that the file uses; a word that is not known here is an error, and so is a member that is not described."""
    known = {"type", "properties", "required", "items", "$ref", "description", "maxLength", "minimum", "maximum", "maxItems", "enum", "additionalProperties"}
    assert schema.keys() <= known, f"{where}: the test knows nothing of {schema.keys() - known}"
    if "$ref" in schema:
        target = openapi
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return check_schema(openapi, target, value, where)
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert any(is_type(value, k) for k in kinds), f"{where}: {value!r} is no {kinds}"
    if "enum" in schema:
        assert value in schema["enum"], where
    if isinstance(value, dict) and schema.get("properties"):
        assert not (missing := set(schema.get("required", [])) - value.keys()), f"{where} lacks {missing}: {value}"
        assert not (more := value.keys() - schema["properties"].keys()), f"{where} has {more} besides: {value}"
        for k, v in value.items():
            check_schema(openapi, schema["properties"][k], v, f"{where}.{k}")
    if isinstance(value, list) and "items" in schema:
        for i, v in enumerate(value):
            check_schema(openapi, schema["items"], v, f"{where}[{i}]")


def test_every_operation_has_a_row_and_every_row_an_operation(world):
    assert set(world.ops) == set(GOOD)


def test_the_file_is_what_paled_prints(world):
    out = subprocess.run([str(world.daemon.pale.build / "paled"), "openapi"], capture_output=True, timeout=30, check=True).stdout
    assert json.loads(out) == world.openapi
    assert set(world.openapi["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]) == CODES
    refs = set(re.findall(r'"\$ref": "#/components/([^"]+)"', json.dumps(world.openapi)))
    for ref in refs:
        kind, name = ref.split("/")
        assert name in world.openapi["components"][kind]


def test_numbers_are_whole_and_not_negative(world):
    """What a generated client sends for a count is what is taken."""
    counts = [(name, f, schema) for name, op in world.ops.items() for f, schema in {**{f: p["schema"] for f, p in op.query.items()}, **op.fields}.items()
              if schema["type"] in ("number", "integer")]
    assert {("file.read", "offset"), ("job.start", "rows"), ("job.signal", "signal")} <= {(name, f) for name, f, _ in counts}
    for name, f, schema in counts:
        assert schema["type"] == "integer" and schema["minimum"] == 0, (name, f, schema)
    for name, shape in world.openapi["components"]["schemas"].items():
        for f, schema in shape.get("properties", {}).items():
            assert schema.get("type") != "number" or f.endswith(("seconds", "_ms")), (name, f)


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_good_request_is_answered_as_described(world, name):
    op, r = world.ops[name], world.request(name)
    with Wire(world.where, 60) as w:
        w.send(r.bytes())
        if name in ENDLESS:
            head = b""
            while b"\r\n\r\n" not in head and (more := w.s.recv(4096)):
                head += more
            assert head.startswith(f"HTTP/1.1 {op.status} ".encode()), head
            assert not op.type or f"Content-Type: {op.type if name != 'file.watch' else 'application/x-ndjson'}".encode() in head
            return
        a = w.answer()
    if name in ("box.freeze", "box.thaw") and a.status == 501:
        check_problem(a, 501, "unsupported")
        pytest.skip("nothing on this host can freeze a box")
    assert a.status == op.status, a
    if op.type is None:
        assert a.body == b"" and a.header("content-type") is None
        return
    assert a.header("content-type").split(";")[0] == op.type
    if op.type == "application/json":
        check_schema(world.openapi, op.schema, a.json())
    elif op.type == "application/x-ndjson":
        a.lines()


# --- bad input, from the schema ---

WRONG = {"string": [1, True, ["a"], {"a": "b"}, 1.5], "integer": ["1", True, [], {}, -1, 1.5, 2 ** 63, 2 ** 64, 1e300], "boolean": [0, 1, "true", [], {}],
         "array": ["a", 1, True, {}, [1], [["a"]], [{}]], "object": ["a", 1, True, [], ["a"]]}


def wrong_values(field):
    kind = field["type"]
    if kind == ["string", "number"]:
        values = [True, [], {}, -1, -0.001, 1e11, "x", "", "-1s", "5 s", "1y", "1e3", "99999999999999999999d"]
    elif kind == ["string", "array"]:
        values = [1, True, {}, [], "", [1], [["a"]], [None], ["a", 2]]
    else:
        values = list(WRONG[kind])
    if "maximum" in field and field["maximum"] < 2 ** 63 - 1:
        values.append(field["maximum"] + 1)
    if "maxLength" in field:
        values.append("1" * (field["maxLength"] + 1))
    if "maxItems" in field:
        values.append(["box.read"] * (field["maxItems"] + 1))
    return values


def bodies(op, good):
    """(why, bytes) of bodies that are none, for an operation that takes JSON."""
    fields = good.json
    yield from ((f"without {f}", {k: v for k, v in fields.items() if k != f}) for f in op.required)
    yield from ((f"{f} null", {**fields, f: None}) for f in op.required)
    yield "an unknown field", {**fields, "no_such_field": 1}
    yield "a field in another case", {**fields, "Name": "x"}
    for f, schema in op.fields.items():
        for v in wrong_values(schema):
            yield f"{f} = {str(v)[:60]!r}", {**fields, f: v}
        if schema["type"] == "object" and f != "policy":
            yield from ((f"{f} of {v!r}", {**fields, f: {"a": v}}) for v in (1, None, {}, {"a": "b"}, [1], True))
            yield f"{f} with too many", {**fields, f: {f"k{i}": "v" for i in range(5000)}}
        if f == "policy":
            yield "a deep policy", {**fields, f: {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": 1}}}}}}}}}}}}}}}}}


def raw_bodies(good):
    text = json.dumps(good.json)
    first = next(iter(good.json), "x")
    yield "not JSON", b"{"
    yield "an array", b"[]"
    yield "a text", b'"text"'
    yield "null", b"null"
    yield "a number", b"1"
    yield "white space", b"   "
    yield "two values", text.encode() + b"{}"
    yield "a trailing comma", text[:-1].encode() + b",}"
    yield "a comment", b"/* */" + text.encode()
    yield "a key twice", text[:-1].encode() + b', "%s": 1, "%s": 1}' % (first.encode(), first.encode())
    yield "a NUL byte", text[:-1].encode() + b', "\0": 1}'
    yield "an escaped NUL", text[:-1].encode() + b', "a\\u0000b": 1}'
    yield "bytes that are no UTF-8", text[:-1].encode() + b', "\xff\xfe": "\xc3("}'
    yield "half a surrogate", text[:-1].encode() + b', "a": "\\ud800"}'
    yield "UTF-16", text.encode("utf-16")
    yield "a byte order mark", b"\xef\xbb\xbf" + text.encode()
    yield "a deep list", b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"
    yield "a deep object", b'{"a":' * 3000 + b"1" + b"}" * 3000
    yield "a huge number", text[:-1].encode() + b', "a": ' + b"9" * 400 + b"}"
    yield "not a number", text[:-1].encode() + b', "a": NaN}'
    yield "a long key", text[:-1].encode() + b', "' + b"k" * 100000 + b'": 1}'
    yield "many keys", b"{" + b",".join(b'"k%d":1' % i for i in range(20000)) + b"}"


TAKES_JSON = sorted(n for n in GOOD if n in {"box.create", "box.ensure", "box.terms", "box.rename", "snapshot.take",
                                             "box.restore", "box.fork", "review.apply", "review.discard", "exec", "job.start", "job.signal", "file.move",
                                             "file.mkdir", "file.edit", "file.patch", "policy.narrow", "policy.change", "prove", "image.build", "token.create",
                                             "approval.answer"})


def test_which_operations_take_json_is_known_here(world):
    assert TAKES_JSON == sorted(n for n, op in world.ops.items() if op.takes_json)


@pytest.mark.parametrize("name", TAKES_JSON)
def test_bad_bodies(world, name):
    op, good = world.ops[name], world.request(name)
    for why, value in bodies(op, good):
        world.refused(good.but(json_body=value).bytes(), why)
    for why, data in raw_bodies(good):
        world.refused(good.but(json_body=None, body=data, headers={"Content-Type": "application/json"}).bytes(), why)
    text = json.dumps(good.json).encode()
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "application", "", "multipart/form-data; boundary=a"):
        headers = {} if kind is None else {"Content-Type": kind}
        world.refused(good.but(json_body=None, body=text, headers=headers).bytes(), f"type {kind}", [415, 400])


def test_an_unlike_case_or_parameter_of_a_content_type_is_the_same_type(world):
    good = world.request("box.terms")
    for kind in ("APPLICATION/JSON", "application/json;charset=utf-8"):
        a = exchange(world.where, good.but(json_body=None, body=json.dumps(good.json).encode(), headers={"Content-Type": kind}).bytes())
        assert a.status == 200, a


def bad_queries(op, good):
    for f, p in op.query.items():
        kind = p["schema"]["type"]
        values = {"integer": ["-1", "x", "1.5", "1e3", "0x10", " 1", "", "99999999999999999999999"], "boolean": ["maybe", "2", "", "TRUE", "truee"],
                  "string": []}.get(kind if isinstance(kind, str) else "time", ["x", "-1s", "", "5 s"])
        if "maximum" in p["schema"]:
            values.append(str(p["schema"]["maximum"] + 1))
        if kind == "string" and p["schema"].get("maxLength", 9999) < 3000:
            values.append("a" * (p["schema"]["maxLength"] + 1))
        for v in values:
            yield f"{f}={v[:40]}", good.but(query={**good.query, f: v}).path()
        if p["required"]:
            yield f"without {f}", good.but(query={k: v for k, v in good.query.items() if k != f}).path()
            yield f"{f} empty", good.but(query={**good.query, f: ""}).path()
    path = good.but(query={}).path()
    mark = "&" if good.query else "?"
    whole = good.path()
    yield "an unknown key", whole + mark + "no_such_key=1"
    yield "a key of a body", whole + mark + "command=x"
    yield "a key twice", path + "?a=1&a=2"
    yield "no key", whole + mark + "=1"
    yield "an empty pair", whole + mark + "&"
    yield "only a mark", path + "?"
    yield "a NUL", whole + mark + "a=%00"
    yield "no escape", whole + mark + "a=%zz"
    yield "half an escape", whole + mark + "a=%2"
    yield "a fragment", whole + "#a"
    yield "too many pairs", path + "?" + "&".join(f"k{i}=1" for i in range(40))


@pytest.mark.parametrize("name", sorted(GOOD))
def test_bad_queries(world, name):
    op, good = world.ops[name], world.request(name)
    for why, path in bad_queries(op, good):
        world.refused(good.bytes(path=path), why)


ABSURD = ["..", ".", "%2e%2e", "%2e%2e%2f%2e%2e", "..%2f..%2fetc%2fpasswd", "%2f", "%5c", "%00", "a%00b", "%", "%zz", "%c0%ae", "%ff", "%0a", "%0d%0aX: y",
          "-", "-1", "0", "18446744073709551616", "99999999999999999999999999", "0x1", "1e3", "a" * 64, "A", "%20", "*", "~", "%27%3b--", "%F0%9F%92%A9",
          "0123456789abcde", "0123456789abcdef", "ffffffffffffffff0", "{box}", "%7Bbox%7D", "a" * 3000]


@pytest.mark.parametrize("name", sorted(n for n in GOOD if n not in MAKES | {"image.import"}))
def test_absurd_ids(world, name):
    op, good = world.ops[name], world.request(name)
    for param in op.params:
        for value in ABSURD:
            path = op.path
            for p in op.params:
                path = path.replace("{%s}" % p, value if p == param else str(good.params[p]))
            query = good.path().partition("?")[2]
            if "\r" in path or " " in path:
                path = path.replace(" ", "%20")
            world.refused(good.bytes(path=path + ("?" + query if query else "")), f"{param} = {value[:60]}")


@pytest.mark.parametrize("name", sorted(MAKES))
def test_absurd_names_to_make(world, name):
    good = world.request(name)
    for value in ABSURD:
        if re.fullmatch("[a-z0-9][a-z0-9-]{0,62}", value):
            continue
        world.refused(good.bytes(path=good.op.path.replace("{box}", value.replace(" ", "%20"))), value[:60])


def test_absurd_names_to_import(world):
    good = world.request("image.import")
    for value in ABSURD:
        if not re.fullmatch("[a-zA-Z0-9][a-zA-Z0-9._:+-]{0,127}", value):
            world.refused(good.bytes(path=f"/v1/images/{value.replace(' ', '%20')}"), value[:60])


@pytest.mark.parametrize("path", ["//", "/v1", "/v1/", "/v1//boxes", "/v1/boxes/", "/v1/boxes//files", "/V1/health", "/v1/health/", "/v1/health/x", "/v1/./health",
                                  "/v1/../v1/health", "/%76%31/boxes/", "/v2/health", "/" + "a/" * 30, "/" + "a" * 4000, "/v1/boxes/x/files/list/../stat"])
def test_paths_that_are_none(world, path):
    world.refused(request_bytes("GET", path), path)


def test_wrong_methods_are_told_the_right_ones(world):
    for path, methods in world.openapi["paths"].items():
        allowed = {m.upper() for m in methods}
        for method in [*METHODS, "HEAD", "OPTIONS", "TRACE", "CONNECT", "FOO", "PRI"]:
            if method in allowed:
                continue
            concrete = re.sub(r"\{[a-z]+\}", "1", path)
            with Wire(world.where, WAIT) as w:
                w.send(request_bytes(method, concrete))
                a = w.answer(method)
                assert a.status == 405 and set(a.header("allow").split(", ")) == allowed, (method, path, a)
                if method != "HEAD":
                    check_problem(a, 405)
                w.send(request_bytes("GET", "/v1/health"))
                assert w.answer().status == 200, f"after {method}"
    for method in ("get", "Get", "GETGETGETGETGETGETGET", "G-T", "GET\x00", "", "GET "):
        world.refused(f"{method} /v1/health HTTP/1.1\r\nHost: a\r\n\r\n".encode(), method)


@pytest.mark.parametrize("name", sorted(n for n in GOOD if n not in TAKES_JSON and n not in ("job.input", "file.write", "tree.upload")))
def test_a_body_where_none_is_taken(world, name):
    good = world.request(name)
    world.refused(good.but(body=b"{}", headers={**good.headers, "Content-Type": "application/json"}).bytes(), "a body")
    world.refused(good.bytes(headers=[("Transfer-Encoding", "chunked")]) + b"0\r\n\r\n", "an empty chunked body")


# --- HTTP itself ---

HEALTH = b"GET /v1/health HTTP/1.1\r\nHost: a\r\n"
POST = b"POST /v1/boxes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
# Where two readers could disagree. All of them are refused, and the connection ends: nothing after it counts.
SHAPES = {
    "length twice": POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "lengths that differ": POST + b"Content-Length: 2\r\nContent-Length: 50\r\n\r\n{}",
    "a list of lengths": POST + b"Content-Length: 2, 2\r\n\r\n{}",
    "a signed length": POST + b"Content-Length: +2\r\n\r\n{}",
    "a negative length": POST + b"Content-Length: -1\r\n\r\n{}",
    "a hexadecimal length": POST + b"Content-Length: 0x2\r\n\r\n{}",
    "a length with a space": POST + b"Content-Length: 2 0\r\n\r\n{}",
    "a length beyond numbers": POST + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    "length and coding": POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
    "coding twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a list of codings": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "an unknown coding": POST + b"Transfer-Encoding: identity\r\n\r\n",
    "a coding in disguise": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding after a tab": POST + b"Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
    "a coding with a vertical tab": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": HEALTH + b"Content-Length : 2\r\n\r\n{}",
    "a folded line": HEALTH + b"X: a\r\n b\r\n\r\n",
    "a line that begins with a space": b"GET /v1/health HTTP/1.1\r\n Host: a\r\n\r\n",
    "bare line feeds": b"GET /v1/health HTTP/1.1\nHost: a\n\n",
    "one bare line feed": b"GET /v1/health HTTP/1.1\r\nHost: a\n\r\n",
    "bare carriage returns": b"GET /v1/health HTTP/1.1\rHost: a\r\r",
    "a carriage return in a value": HEALTH + b"X: a\rb\r\n\r\n",
    "a NUL in a value": HEALTH + b"X: a\0b\r\n\r\n",
    "bytes beyond ASCII in a value": HEALTH + b"X: \xff\r\n\r\n",
    "a header without a name": HEALTH + b": a\r\n\r\n",
    "a header without a colon": HEALTH + b"X\r\n\r\n",
    "two hosts": HEALTH + b"Host: b\r\n\r\n",
    "no host": b"GET /v1/health HTTP/1.1\r\n\r\n",
    "an empty host": b"GET /v1/health HTTP/1.1\r\nHost: \r\n\r\n",
    "two tokens": HEALTH + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
    "two names": HEALTH + b"Mcp-Name: read\r\nMCP-Name: exec\r\n\r\n",
    "two methods": HEALTH + b"Mcp-Method: ping\r\nMcp-Method: tools/call\r\n\r\n",
    "two keys": HEALTH + b"Idempotency-Key: a\r\nIdempotency-Key: b\r\n\r\n",
    "an absolute target": b"GET http://a/v1/health HTTP/1.1\r\nHost: a\r\n\r\n",
    "an authority as target": b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    "a star as target": b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "two spaces": b"GET  /v1/health HTTP/1.1\r\nHost: a\r\n\r\n",
    "a space in the target": b"GET /v1/he alth HTTP/1.1\r\nHost: a\r\n\r\n",
    "a tab for a space": b"GET\t/v1/health\tHTTP/1.1\r\nHost: a\r\n\r\n",
    "no version": b"GET /v1/health\r\nHost: a\r\n\r\n",
    "a long version": b"GET /v1/health HTTP/1.10\r\nHost: a\r\n\r\n",
    "another protocol": b"GET /v1/health HTTQ/1.1\r\nHost: a\r\n\r\n",
    "an expectation of something else": HEALTH + b"Expect: the-unexpected\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200,
    "a line of binary": bytes(range(256)) + b"\r\n\r\n",
}
# Statuses of the 5xx class that mean the request, not us.
MEANT = {"a list of codings": 501, "an unknown coding": 501, "a coding in disguise": 501}


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_shapes_that_two_readers_could_take_differently(world, shape):
    with Wire(world.where, WAIT) as w:
        w.send(SHAPES[shape] + HEALTH + b"\r\n")
        a = w.answer()
        assert a.status == MEANT.get(shape, a.status) and (400 <= a.status < 500 or shape in MEANT), a
        check_problem(a, code="bad-input")
        assert a.header("connection") == "close" and w.ended(), "what came after it was read"


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/1.2", "HTTP/3.0"])
def test_other_versions_are_refused(world, version):
    a = exchange(world.where, f"GET /v1/health {version}\r\nHost: a\r\n\r\n".encode())
    check_problem(a, 505, "bad-input")


BAD_CHUNKS = [b"x\r\n", b"-1\r\n", b"+2\r\n{}\r\n0\r\n\r\n", b"0x2\r\n{}\r\n0\r\n\r\n", b"2;ext=1\r\n{}\r\n0\r\n\r\n", b"2\n{}\n0\n\n", b"2\r\n{}0\r\n\r\n", b"2\r\n{}\r\r0\r\n\r\n",
              b"3\r\n{}\r\n0\r\n\r\n", b"0\r\nTrailer: x\r\n\r\n", b"ffffffffffffffff\r\n{}", b"123456789\r\n", b"\r\n\r\n", b" 2\r\n{}\r\n0\r\n\r\n", b"2 \r\n{}\r\n0\r\n\r\n"]


@pytest.mark.parametrize("chunks", BAD_CHUNKS)
@pytest.mark.parametrize("name", ["box.terms", "file.write"])
def test_broken_chunks(world, chunks, name):
    good = world.request(name)
    head = good.but(json_body=None, body=None, headers={"Content-Type": "application/json", "Transfer-Encoding": "chunked"}).bytes()
    with Wire(world.where, WAIT) as w:
        w.send(head + chunks + HEALTH + b"\r\n")
        a = w.answer()
        check_problem(a, 400, "bad-input")
        assert a.header("connection") == "close" and w.ended()


def test_good_chunks_of_all_sizes(world):
    good = world.request("box.terms")
    text = json.dumps(good.json).encode()
    head = good.but(json_body=None, headers={"Content-Type": "application/json", "Transfer-Encoding": "chunked"}).bytes()
    for size in (1, 2, 7, len(text)):
        parts = [text[i:i + size] for i in range(0, len(text), size)]
        data = head + b"".join(b"%X\r\n%s\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"
        with Wire(world.where, WAIT) as w:
            w.send(data + HEALTH + b"\r\n")
            assert w.answer().status == 200
            assert w.answer().status == 200, "the next request"
    with Wire(world.where, WAIT) as w:  # and byte by byte
        for i in range(len(data)):
            w.send(data[i:i + 1])
        assert w.answer().status == 200


def test_what_is_too_large_is_refused_at_once(world):
    """By its length alone: nobody has to send it, or to wait until it is sent."""
    for name in ("box.create", "exec"):
        head = world.request(name).but(json_body=None, headers={"Content-Type": "application/json"}).bytes(headers=[("Content-Length", str((1 << 20) + 1))])
        world.refused(head, "a long body", [413])
        world.refused(head.replace(b"1048577", b"999999999999999999"), "an endless body", [413])
    chunked = world.request("box.create").but(json_body=None, headers={"Content-Type": "application/json", "Transfer-Encoding": "chunked"}).bytes()
    world.refused(chunked + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 17, "a long chunked body", [413])
    world.refused(HEALTH + b"X: " + b"a" * 20000, "a long header", [431])
    world.refused(HEALTH + b"X: a\r\n" * 4000, "many headers", [431])
    world.refused(HEALTH + b"".join(b"X%d: a\r\n" % i for i in range(100)) + b"\r\n", "more headers than are taken", [431])
    world.refused(HEALTH + b"A" * 100 + b": a\r\n\r\n", "a long name", [400, 431])
    world.refused(b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", "a long target", [414])
    world.refused(b"GET /" + b"a" * 50000, "a target without end", [414, 431])
    world.refused(b"A" * 50000, "a method without end", [400, 414, 431])
    world.refused(HEALTH + b"Idempotency-Key: " + b"k" * 129 + b"\r\n\r\n", "a long key", [400])
    world.refused(HEALTH + b"Idempotency-Key:\r\n\r\n", "an empty key", [400])


def test_pipelined_requests_are_answered_in_order(world):
    with Wire(world.where, WAIT) as w:
        good = world.request("box.terms").bytes()
        w.send(HEALTH + b"\r\n" + good + b"GET /v1/no HTTP/1.1\r\nHost: a\r\n\r\n" + b"\r\n\r\n" + world.request("exec").bytes() + HEALTH + b"\r\n")
        assert [w.answer().status for _ in range(5)] == [200, 200, 404, 200, 200]
        w.send((HEALTH + b"\r\n") * 500)
        assert [w.answer().status for _ in range(500)] == [200] * 500
        w.send(HEALTH + b"Connection: close\r\n\r\n" + HEALTH + b"\r\n")
        assert w.answer().header("connection") == "close" and w.ended()


def test_a_client_that_pipelines_without_reading_stops_only_itself(world):
    with Wire(world.where, WAIT) as w:
        w.s.setblocking(False)
        sent, until = 0, time.monotonic() + 3
        block = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 50
        while time.monotonic() < until:
            if not select.select([], [w.s], [], 0.3)[1]:
                break
            sent += w.s.send(block)
        assert sent < 64 << 20, "it takes requests without end"
        assert world.api.good("GET", "/v1/health")["status"] == "ok"


def test_expect_100_continue(world):
    good = world.request("box.terms")
    text = json.dumps(good.json).encode()
    head = good.but(json_body=None, headers={"Content-Type": "application/json", "Expect": "100-continue", "Content-Length": str(len(text))}).bytes()
    with Wire(world.where, WAIT) as w:
        w.send(head)
        assert w.answer().status == 100
        w.send(text)
        assert w.answer().status == 200
    with Wire(world.where, WAIT) as w:  # what is refused by its head needs no body
        w.send(head.replace(b"Content-Length: %d" % len(text), b"Content-Length: 9999999"))
        check_problem(w.answer(), 413)
    data = world.request("file.write")
    with Wire(world.where, WAIT) as w:
        w.send(data.but(body=None, headers={"Expect": "100-continue", "Content-Length": "4"}).bytes())
        assert w.answer().status == 100
        w.send(b"data")
        assert w.answer().status == 204


def test_truncated_bodies_and_heads(world):
    for data in (world.request("box.create").bytes()[:-5], HEALTH[:-3], HEALTH, b"G", world.request("file.write").bytes()[:-2],
                 POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}"):
        with Wire(world.where, WAIT) as w:
            w.send(data)
        with Wire(world.where, WAIT) as w:  # one that waits for an answer nevertheless
            w.send(data)
            w.s.shutdown(socket.SHUT_WR)
            a = w.answer()
            assert a is None or 400 <= a.status < 500, a
    assert world.api.good("GET", "/v1/health")["status"] == "ok"


def test_slow_clients_hold_up_nobody_and_are_cut(world):
    """One byte at a time, for ever; and some that say nothing at all."""
    slow = [Wire(world.where, 30) for _ in range(40)]
    body = Wire(world.where, 30)
    body.send(POST + b"Content-Length: 100\r\n\r\n{")
    silent = [Wire(world.where, 30) for _ in range(10)]
    stop = threading.Event()

    def drip():
        data, at = HEALTH, 0
        while not stop.wait(0.1):
            for w in slow:
                w.send(data[at:at + 1])
            at = (at + 1) % (len(data) - 30)
    t = threading.Thread(target=drip, daemon=True)
    t.start()
    try:
        for _ in range(50):
            began = time.monotonic()
            assert world.api.good("GET", "/v1/health")["status"] == "ok"
            assert time.monotonic() - began < 5
        assert world.api.out(world.scene.box, "echo meanwhile") == "meanwhile\n"
        assert wait_until(lambda: all(map(ended, (slow[0], silent[0], body))), 25, 0.2), "they are kept for ever"
    finally:
        stop.set()
        t.join()
        for w in [*slow, *silent, body]:
            w.s.close()


def ended(w):
    w.s.setblocking(False)
    try:
        return w.s.recv(65536) == b"" or ended(w)
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_many_connections_at_once(world):
    many = [Wire(world.where, WAIT) for _ in range(500)]
    for w in many:
        w.send(HEALTH + b"\r\n")
    assert {w.answer().status for w in many} == {200}
    for w in many:
        w.s.close()
    assert wait_until(lambda: float(re.search(rb"\npale_http_connections (\d+)", world.api.get("/v1/metrics").body)[1]) < 20)


def test_random_bytes_in_place_of_everything(world):
    """Each good request with a few bytes of it changed at random: it may even be good, but nothing breaks."""
    chance = random.Random(20240229)
    for name in sorted(set(GOOD) - ENDLESS - {"doctor", "prove", "box.create", "box.ensure", "job.start", "exec", "tree.upload", "job.wait", "job.logs"}):
        data = world.request(name).bytes()
        for _ in range(25):
            changed = bytearray(data)
            for _ in range(chance.randint(1, 3)):
                changed[chance.randrange(len(changed))] = chance.choice([0, 10, 13, 32, 34, 37, 46, 47, 58, 91, 123, 127, 255, chance.randrange(256)])
            with Wire(world.where, 10) as w:
                w.send(bytes(changed))
                w.s.shutdown(socket.SHUT_WR)
                a = w.answer(has_left=True)
                assert a is None or a.status < 500 or a.status in (501, 505), (bytes(changed)[:600], a)


def test_clients_that_leave_in_the_middle_of_everything(world):
    world.api.good("DELETE", "/v1/panic")  # a request with a changed byte may have been a good one
    for name in sorted(set(GOOD) - {"doctor", "box.create", "box.ensure"}):
        data = world.request(name).bytes()
        for part in (len(data), len(data) // 2, max(1, len(data) - 1)):
            with Wire(world.where, WAIT) as w:
                w.send(data[:part])
    assert world.api.good("GET", "/v1/health")["status"] == "ok"
