"""Tenants on several servers: each tenant has one, with its store, its threads, and the graph that uses both."""

from collections.abc import Mapping
from contextlib import ExitStack
from zlib import crc32

from everthread import Identity
from everthread.graphs import create_memory_agent
from everthread.stores import open_checkpointer, open_store, thread_config

SHARDS = ["sqlite:./shard-0", "sqlite:./shard-1"]  # or "postgresql://.../memory", a server each; only append
MOVED = {"globex": "sqlite:./shard-1"}  # tenants that are not where their hash says: the large ones, the moved ones


def shard_of(tenant: str, shards: list[str] = SHARDS, moved: Mapping[str, str] = MOVED) -> str:
    """The URL of a tenant's server, always the same."""
    return moved.get(tenant) or shards[crc32(tenant.encode()) % len(shards)]


with ExitStack() as opened:
    agents = {}
    for url in SHARDS:
        store, saver = opened.enter_context(open_store(url)), opened.enter_context(open_checkpointer(url))
        agents[url] = create_memory_agent().compile(checkpointer=saver, store=store)

    def say(who: Identity, text: str, thread: str) -> str:
        agent = agents[shard_of(who.tenant)]
        said = agent.invoke({"messages": [("user", text)]}, thread_config(who, thread), context=who)
        return said["messages"][-1].text

    for tenant in ("acme", "globex", "contoso"):
        who = Identity(tenant=tenant, user="ana")
        say(who, f"I prefer tea from {tenant}.", "monday")
        print(f"{shard_of(tenant)}: {say(who, 'Which tea do I prefer?', 'tuesday')}")
