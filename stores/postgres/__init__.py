"""The store on a PostgreSQL server: the same promises for many tenants."""

from everthread.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
