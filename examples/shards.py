"""Tenants on several servers: each tenant has one, with its store, its threads, and the graph that uses both."""

from contextlib import ExitStack
from zlib import crc32

from everthread import Identity
from everthread.graphs import create_memory_agent
from everthread.stores import open_checkpointer, open_store, thread_config

# each "postgresql://.../memory" in practice; 64 for good, of which a new server takes some over, tenant by tenant
PLACES = ["sqlite:./shard-0"] * 32 + ["sqlite:./shard-1"] * 32
MOVED = {"globex": "sqlite:./shard-0"}  # tenants that are not where their hash says: large ones, and those that moved


def shard_of(tenant: str) -> str:
    """The URL of a tenant's server, always the same."""
    return MOVED.get(tenant) or PLACES[crc32(tenant.encode()) % len(PLACES)]


with ExitStack() as opened:
    agents = {}
    for url in {*PLACES, *MOVED.values()}:
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
