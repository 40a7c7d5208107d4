"""Stands between a client and its PostgreSQL server, and cuts the connection when a transaction is to be committed."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Literal

from psycopg.conninfo import conninfo_to_dict

__all__ = ["Cutter", "cutter"]

Cut = Literal["before", "after"]


class Cutter:
    """`next` says whether the next COMMIT is lost on its way to the server, or only the answer to it; None: neither."""

    def __init__(self, url: str) -> None:
        self.next: Cut | None = None
        self._parts = conninfo_to_dict(url)
        self._door = socket.create_server(("127.0.0.1", 0))
        self._threads: list[Thread] = []

    @property
    def url(self) -> str:
        """How the server is reached through this."""
        host, port = self._door.getsockname()
        through = {"host": host, "port": port, "sslmode": "disable", "gssencmode": "disable"}
        parts = {**self._parts, **through}
        known = {name: str(value) for name, value in parts.items() if value is not None}
        user, password = known.pop("user", "postgres"), known.pop("password", "")
        del known["host"], known["port"]
        name = known.pop("dbname", "postgres")
        options = "&".join(f"{key}={value}" for key, value in known.items())
        return f"postgresql://{user}:{password}@{host}:{port}/{name}?{options}"

    def run(self) -> None:
        """Serve until `close`."""
        with suppress(OSError), self._door:
            while True:
                client, _ = self._door.accept()
                thread = Thread(target=self._serve, args=(client,))
                self._threads.append(thread)
                thread.start()

    def close(self) -> None:
        """End when every connection has ended."""
        self._door.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _server(self) -> socket.socket:
        host, port = str(self._parts.get("host") or "localhost"), int(str(self._parts.get("port") or 5432))
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def _serve(self, client: socket.socket) -> None:
        """Carry what either side says to the other, up to a COMMIT that is to be cut off."""
        with client, self._server() as server, suppress(OSError):
            deaf = False
            while True:
                for speaker in select.select([client, server], [], [])[0]:
                    data = speaker.recv(65_536)
                    if not data or (deaf and b"COMMIT\0" in data and speaker is server):
                        return
                    if speaker is server:
                        if not deaf:
                            client.sendall(data)
                        continue
                    if self.next is not None and b"COMMIT\0" in data:
                        cut, self.next = self.next, None
                        if cut == "before":
                            return
                        deaf = True  # the server does what it is asked to, and nobody hears of it
                    server.sendall(data)


@contextmanager
def cutter(url: str) -> Iterator[Cutter]:
    """One that stands before this server."""
    between = Cutter(url)
    serving = Thread(target=between.run)
    serving.start()
    try:
        yield between
    finally:
        between.close()
        serving.join()
