"""Another source of context beside memory: asked before each call of the model, told after it."""

from everthread import Identity
from everthread.graphs import create_memory_agent
from everthread.nodes import ContextProvider, Provided
from everthread.stores import open_checkpointer, open_store


class Glossary(ContextProvider):
    key = "glossary"

    def before(self, identity, messages):
        return Provided(instructions=f"{identity.user} says 'the warehouse' and means BigQuery.")

    def after(self, identity, messages, reply):
        print("answered:", reply.text.splitlines()[0])


with open_store("sqlite:./data") as store, open_checkpointer("sqlite:./data") as saver:
    agent = create_memory_agent(providers=[Glossary()]).compile(checkpointer=saver, store=store)
    ana = Identity(tenant="acme", user="ana")
    agent.invoke({"messages": [("user", "What is the warehouse?")]}, {"configurable": {"thread_id": "a"}}, context=ana)
