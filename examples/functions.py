"""Memory in a workflow of functions (`@entrypoint`): a node is called like a function."""

from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.func import entrypoint, task
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime

from everthread import Identity, MemoryContext
from everthread.nodes import Extract, Retrieve, memory_block
from everthread.nodes.reason import OfflineModel  # stands in for your ChatOpenAI or ChatAnthropic
from everthread.stores import open_checkpointer, open_store

model, retrieve, extract = OfflineModel(), Retrieve(), Extract()
ana = MemoryContext(identity=Identity(tenant="acme", user="ana"))


@task
def reply(messages):
    return model.invoke(messages)


with open_store("sqlite:./data") as store, open_checkpointer("sqlite:./data") as saver:

    @entrypoint(checkpointer=saver, store=store, context_schema=MemoryContext)
    def chat(text: str, *, previous: dict | None, runtime: Runtime[MemoryContext]):
        state = previous or {"messages": []}
        state["messages"] = add_messages(state["messages"], HumanMessage(text))
        state |= retrieve(state, runtime)
        system = SystemMessage(f"You answer briefly.\n\n{memory_block(state, runtime)}")
        answer = reply([system, *state["messages"]]).result()
        state["messages"] = add_messages(state["messages"], answer)
        state |= extract(state, runtime)
        return entrypoint.final(value=answer.text, save=state)

    for thread, text in [("monday", "I prefer tea over coffee."), ("tuesday", "Do I prefer tea or coffee?")]:
        print(f"{thread}: {chat.invoke(text, {'configurable': {'thread_id': thread}}, context=ana)}")
