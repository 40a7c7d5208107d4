"""Threads in PostgreSQL, on LangGraph's own saver for it: what it has written goes on."""

from everthread.errors import UsageError

try:
    from everthread.stores.checkpoints.postgres.saver import PostgresSaver
except ImportError as error:  # psycopg raises it too when libpq is missing
    raise UsageError("threads in PostgreSQL need more packages; pip install 'everthread[postgres]'") from error

__all__ = ["PostgresSaver"]
