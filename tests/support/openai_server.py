"""A small server that speaks Chat Completions over loopback, for tests of the real `langchain-openai` client.

It plays a script, one step for each request, and remembers what it was sent:

    with OpenAIServer(Say("hello"), Overflow()) as server:
        model = server.model()
        model.invoke("hi")
        server.requests[0]["messages"]

Each step answers as the request asked: as one JSON body, or as a stream of server-sent events.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self, cast

from langchain_openai import ChatOpenAI

__all__ = ["CallTools", "CutOff", "Dropped", "Failing", "OpenAIServer", "Overflow", "RateLimited", "Say", "Structured"]

Json = dict[str, Any]
CREATED = 1_700_000_000


class Response(NamedTuple):
    """What goes over the wire."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    missing: int = 0
    """Bytes that are promised in Content-Length and never sent: the connection breaks."""


@dataclass(frozen=True)
class Say:
    """An answer in prose."""

    text: str
    finish: str | None = "stop"

    def respond(self, request: Json) -> Response:
        return _completion(request, {"content": self.text}, self.finish)


@dataclass(frozen=True)
class CallTools:
    """An answer that calls tools, all at once: `CallTools([("add", {"a": 1})])`. Ids are call_0, call_1, ..."""

    calls: Sequence[tuple[str, Json]]
    text: str = ""

    def respond(self, request: Json) -> Response:
        calls = [
            {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for n, (name, arguments) in enumerate(self.calls)
        ]
        return _completion(request, {"content": self.text or None, "tool_calls": calls}, "tool_calls")


@dataclass(frozen=True)
class Structured:
    """An answer in the form that was asked for: `response_format` of a JSON schema, or the tool that must be called."""

    data: Json

    def respond(self, request: Json) -> Response:
        if request.get("response_format", {}).get("type") == "json_schema":
            return _completion(request, {"content": json.dumps(self.data, ensure_ascii=False)}, "stop")
        name = request["tool_choice"]["function"]["name"]
        return CallTools([(name, self.data)]).respond(request)


@dataclass(frozen=True)
class CutOff:
    """A reply that breaks off: the stream ends cleanly, but no chunk says why it finished."""

    text: str
    done: bool = False
    """Whether `[DONE]` is sent all the same, as some proxies do."""

    def respond(self, request: Json) -> Response:
        return _completion(request, {"content": self.text}, None, done=self.done)


@dataclass(frozen=True)
class Overflow:
    """OpenAI's refusal of a request that is too long for the model."""

    def respond(self, request: Json) -> Response:
        return _error(
            400,
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. "
            "Please reduce the length of the messages.",
            type="invalid_request_error",
            param="messages",
            code="context_length_exceeded",
        )


@dataclass(frozen=True)
class RateLimited:
    """OpenAI's 429. The client waits as long as `retry_after_ms` says, then tries again."""

    retry_after_ms: int = 1

    def respond(self, request: Json) -> Response:
        response = _error(429, "Rate limit reached for requests", type="requests", code="rate_limit_exceeded")
        return response._replace(
            headers={**response.headers, "retry-after": "1", "retry-after-ms": str(self.retry_after_ms)}
        )


@dataclass(frozen=True)
class Failing:
    """Any other error: a status and a message."""

    status: int
    message: str

    def respond(self, request: Json) -> Response:
        return _error(self.status, self.message, type="server_error", code=None)


@dataclass(frozen=True)
class Dropped:
    """A connection that breaks in the middle of the body, after `text` was sent."""

    text: str = "half of a "

    def respond(self, request: Json) -> Response:
        whole = CutOff(self.text).respond(request)
        return whole._replace(missing=1_000)


Step = Say | CallTools | Structured | CutOff | Overflow | RateLimited | Failing | Dropped


class OpenAIServer:
    """Plays `steps` in order, one for each request. Serves while its `with` block runs."""

    def __init__(self, *steps: Step) -> None:
        self.steps = steps
        self.requests: list[Json] = []
        """The body of every request, in order."""
        self._lock = threading.Lock()
        self._http = _Server(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        """The `base_url` for a client."""
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    def model(self, **options: Any) -> ChatOpenAI:
        """A real client of this server, which tries once unless `max_retries` says otherwise."""
        return ChatOpenAI(
            **{"model": "gpt-test", "base_url": self.url, "api_key": "unused", "max_retries": 0, **options}
        )

    def answer(self, request: Json) -> Response:
        """Note the request and play the next step; a request after the last step is refused, so the test fails."""
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
        if number > len(self.steps):
            return _error(400, f"the script has {len(self.steps)} steps and this is request {number}", type="script")
        return self.steps[number - 1].respond(request)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # closing waits for every answer: no socket outlives the test

    def __init__(self, script: OpenAIServer) -> None:
        self.script = script
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    # HTTP/1.0: each connection carries one request, so none stays open in a client's pool.

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        request = json.loads(self.rfile.read(length))
        response = cast(_Server, self.server).script.answer(request)
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(response.body) + response.missing))
        self.end_headers()
        self.wfile.write(response.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test's output clean."""


def _error(status: int, message: str, **details: Any) -> Response:
    body = {"error": {"message": message, "type": None, "param": None, "code": None, **details}}
    return Response(status, {"content-type": "application/json"}, json.dumps(body).encode())


def _completion(request: Json, message: Json, finish: str | None, *, done: bool = True) -> Response:
    if not request.get("stream"):
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        body = {**_frame(request, "chat.completion"), "choices": [choice], "usage": _usage()}
        return Response(200, {"content-type": "application/json"}, json.dumps(body, ensure_ascii=False).encode())
    events = [json.dumps(chunk, ensure_ascii=False) for chunk in _chunks(request, message, finish)]
    if done:
        events.append("[DONE]")
    return Response(200, {"content-type": "text/event-stream"}, "".join(f"data: {e}\n\n" for e in events).encode())


def _chunks(request: Json, message: Json, finish: str | None) -> Iterator[Json]:
    def chunk(delta: Json, finish_reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return {**_frame(request, "chat.completion.chunk"), "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _halves(message.get("content") or ""):
        yield chunk({"content": piece})
    for index, call in enumerate(message.get("tool_calls", [])):
        start, end = _halves(call["function"]["arguments"])
        yield chunk({"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": start}}]})
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": end}}]})
    if finish is None:
        return
    yield chunk({}, finish)
    if request.get("stream_options", {}).get("include_usage"):
        yield {**_frame(request, "chat.completion.chunk"), "choices": [], "usage": _usage()}


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _frame(request: Json, kind: str) -> Json:
    return {"id": "chatcmpl-test", "object": kind, "created": CREATED, "model": request["model"]}


def _usage() -> Json:
    return {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
