# SPDX-License-Identifier: Apache-2.0
"""A model that says what a script tells it, on loopback, in the four dialects the harnesses speak.

A script is a list of turns. A turn is a text, or a list of (tool, arguments) that the model calls at once. Only requests that offer tools
take a turn; what a harness asks beside them (a title for the session, a summary) is answered with "ok".
"""
import http.server
import json
import re
import threading


def anthropic_events(number, turn):
    yield "message_start", {"type": "message_start", "message": {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}}
    blocks = [turn] if isinstance(turn, str) else turn
    for i, b in enumerate(blocks):
        if isinstance(b, str):
            yield "content_block_start", {"type": "content_block_start", "index": i, "content_block": {"type": "text", "text": ""}}
            yield "content_block_delta", {"type": "content_block_delta", "index": i, "delta": {"type": "text_delta", "text": b}}
        else:
            yield "content_block_start", {"type": "content_block_start", "index": i, "content_block": {
                "type": "tool_use", "id": f"call_{number}_{i}", "name": b[0], "input": {}}}
            yield "content_block_delta", {"type": "content_block_delta", "index": i, "delta": {
                "type": "input_json_delta", "partial_json": json.dumps(b[1])}}
        yield "content_block_stop", {"type": "content_block_stop", "index": i}
    yield "message_delta", {"type": "message_delta", "delta": {"stop_reason": "end_turn" if isinstance(turn, str) else "tool_use",
                                                               "stop_sequence": None}, "usage": {"output_tokens": 1}}
    yield "message_stop", {"type": "message_stop"}


def anthropic_whole(number, turn):
    content = [{"type": "text", "text": turn}] if isinstance(turn, str) else [
        {"type": "tool_use", "id": f"call_{number}_{i}", "name": n, "input": a} for i, (n, a) in enumerate(turn)]
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": content,
            "stop_reason": "end_turn" if isinstance(turn, str) else "tool_use", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1}}


def chat_message(number, turn):
    if isinstance(turn, str):
        return {"role": "assistant", "content": turn}
    return {"role": "assistant", "content": None, "tool_calls": [
        {"index": i, "id": f"call_{number}_{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
        for i, (n, a) in enumerate(turn)]}


def chat_events(number, turn):
    base = {"id": f"chat_{number}", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    yield None, {**base, "choices": [{"index": 0, "delta": chat_message(number, turn), "finish_reason": None}]}
    yield None, {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop" if isinstance(turn, str) else "tool_calls"}],
                 "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
    yield None, "[DONE]"


def chat_whole(number, turn):
    return {"id": f"chat_{number}", "object": "chat.completion", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "message": chat_message(number, turn), "finish_reason": "stop" if isinstance(turn, str) else "tool_calls"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


def response_items(number, turn):
    if isinstance(turn, str):
        return [{"type": "message", "id": f"item_{number}", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": turn, "annotations": []}]}]
    items = []
    for i, (name, arguments) in enumerate(turn):
        item = {"id": f"item_{number}_{i}", "call_id": f"call_{number}_{i}", "status": "completed"}
        space, _, bare = name.rpartition("/")
        if isinstance(arguments, str):
            item |= {"type": "custom_tool_call", "name": bare, "input": arguments}
        elif name == "tool_search":
            item |= {"type": "tool_search_call", "execution": "client", "arguments": arguments}
        else:
            item |= {"type": "function_call", "name": bare, "arguments": json.dumps(arguments)}
        if space:
            item["namespace"] = space
        items.append(item)
    return items


def response_whole(number, turn):
    return {"id": f"resp_{number}", "object": "response", "created_at": 1, "status": "completed", "model": "scripted",
            "output": response_items(number, turn), "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                                                              "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}}


def response_events(number, turn):
    whole = response_whole(number, turn)
    yield "response.created", {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    for i, item in enumerate(whole["output"]):
        yield "response.output_item.added", {"type": "response.output_item.added", "output_index": i, "item": item}
        yield "response.output_item.done", {"type": "response.output_item.done", "output_index": i, "item": item}
    yield "response.completed", {"type": "response.completed", "response": whole}


def gemini_whole(_number, turn):
    parts = [{"text": turn}] if isinstance(turn, str) else [{"functionCall": {"name": n, "args": a}} for n, a in turn]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}, "modelVersion": "scripted"}


def gemini_events(number, turn):
    yield None, gemini_whole(number, turn)


DIALECTS = [(re.compile(r"/v1/messages$"), anthropic_events, anthropic_whole), (re.compile(r"/chat/completions$"), chat_events, chat_whole),
            (re.compile(r"/responses$"), response_events, response_whole), (re.compile(r":streamGenerateContent$"), gemini_events, gemini_whole),
            (re.compile(r":generateContent$"), gemini_events, gemini_whole)]


def tool_names(body):
    """Every tool a request offers, whatever its dialect; one of a namespace is NAMESPACE/NAME."""
    names = set()
    listed = list(body.get("tools") or [])
    for item in body["input"] if isinstance(body.get("input"), list) else []:
        listed += item.get("tools") or [] if item.get("type") == "additional_tools" else []
    for t in listed:
        if "functionDeclarations" in t:
            names |= {f["name"] for f in t["functionDeclarations"]}
        elif "function" in t:
            names.add(t["function"]["name"])
        elif t.get("type") == "namespace":
            names |= {f"{t['name']}/{f['name']}" for f in t["tools"]}
        else:
            names.add(t.get("name") or t.get("type"))
    return names


def flat(value):
    """The text in a result, however it is wrapped."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(flat(v) for v in value)
    if isinstance(value, dict):
        return "\n".join(flat(v) for k, v in value.items() if k != "type")
    return str(value)


def results_in(body):
    """(id or name, text) of every tool result in a request."""
    for m in body.get("messages") or []:
        if m.get("role") == "tool":
            yield m.get("tool_call_id"), flat(m.get("content"))
        for c in m.get("content") if isinstance(m.get("content"), list) else []:
            if c.get("type") == "tool_result":
                yield c.get("tool_use_id"), flat(c.get("content"))
    for item in body.get("input") if isinstance(body.get("input"), list) else []:
        if str(item.get("type")).endswith("_output"):
            yield item.get("call_id"), flat(item.get("output") or item.get("tools"))
    for turn, c in enumerate(body.get("contents") or []):
        for i, p in enumerate(c.get("parts") or []):
            if "functionResponse" in p:
                yield (turn, i, p["functionResponse"]["name"]), flat(p["functionResponse"].get("response"))


class Model:
    def __init__(self, script=()):
        self.script = list(script)
        self.bodies = []    # of every request for a completion, in turn
        self.requests = []  # "METHOD path" of all
        self.turn = 0
        self.lock = threading.Lock()
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, body, kind="application/json", status=200):
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def do_GET(self):
                model.requests.append(f"{self.command} {self.path}")
                if self.path.split("?")[0].endswith("/models"):
                    return self.answer({"object": "list", "data": [{"id": "scripted", "object": "model"}], "models": []})
                return self.answer({"error": {"message": "not here"}}, status=404)

            do_HEAD = do_GET

            def read_body(self):
                if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                    data = b""
                    while n := int(self.rfile.readline().split(b";")[0], 16):
                        data += self.rfile.read(n)
                        self.rfile.readline()
                    self.rfile.readline()
                    return data
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))

            def do_POST(self):
                raw = self.read_body()
                model.requests.append(f"POST {self.path}")
                path, _, query = self.path.partition("?")
                try:
                    body = json.loads(raw or b"{}")
                except ValueError:
                    return self.answer({"error": {"message": "no JSON"}}, status=400)
                for pattern, events, whole in DIALECTS:
                    if pattern.search(path):
                        number, turn = model.next(body)
                        if body.get("stream") or path.endswith(":streamGenerateContent"):
                            out = "".join((f"event: {n}\n" if n else "") + f"data: {d if isinstance(d, str) else json.dumps(d)}\n\n"
                                          for n, d in events(number, turn))
                            return self.answer(out.encode(), "text/event-stream")
                        return self.answer(whole(number, turn))
                if path.endswith("count_tokens"):
                    return self.answer({"input_tokens": 1})
                return self.answer({"error": {"message": "not here"}}, status=404)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def next(self, body):
        with self.lock:
            self.bodies.append(body)
            if not tool_names(body) or self.turn >= len(self.script):
                return len(self.bodies), "ok"
            self.turn += 1
            turn = self.script[self.turn - 1]
            return len(self.bodies), turn(body) if callable(turn) else turn

    def offered(self):
        """Every tool any request has offered."""
        return set().union(*map(tool_names, self.bodies)) if self.bodies else set()

    def results(self):
        """The texts of all tool results, each once, in the order they came."""
        seen = {}
        for body in self.bodies:
            for key, text in results_in(body):
                seen.setdefault(key, text)
        return list(seen.values())

    def said(self):
        """All the harness has told the model."""
        return json.dumps(self.bodies, ensure_ascii=False)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
