"""Sending to the end: psycopg leaves the rest of a large value unsent in a pipeline, and then waits for its answer."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import psycopg
from psycopg.waiting import READY_R, WAIT_RW

__all__ = ["send_all"]


def send_all(connection: psycopg.Connection[Any]) -> None:
    """Send what a statement in a pipeline has left: of more than the socket takes at once, psycopg 3.3 sends a part."""
    if connection.pgconn.flush():
        connection.wait(_rest(connection))


def _rest(connection: psycopg.Connection[Any]) -> Generator[Any, Any, None]:
    while connection.pgconn.flush():
        while not (ready := (yield WAIT_RW)):
            continue
        if ready & READY_R:
            connection.pgconn.consume_input()  # a server that waits for its answers to be read reads nothing
