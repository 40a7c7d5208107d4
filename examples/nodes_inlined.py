"""The same agent with memory: two nodes of ours among its own."""

from typing import Annotated, TypedDict

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langgraph.graph import StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime

from everthread import Identity, MemoryContext
from everthread.nodes import Extract, Reference, Retrieve, memory_block
from everthread.nodes.reason import OfflineModel  # stands in for your ChatOpenAI or ChatAnthropic
from everthread.stores import open_checkpointer, open_store

model = OfflineModel()


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    language: str
    recalled: list[Reference]


def answer(state: State, runtime: Runtime[MemoryContext]) -> State:
    system = SystemMessage(f"You answer briefly.\n\n{memory_block(state, runtime)}")
    return {"messages": [model.invoke([system, *state["messages"]])]}


graph = StateGraph(State)
graph.add_sequence([("retrieve", Retrieve()), ("answer", answer), ("extract", Extract())])
graph.set_entry_point("retrieve")

with open_store("sqlite:./data") as store, open_checkpointer("sqlite:./data") as saver:
    agent = graph.compile(checkpointer=saver, store=store)
    for thread, text in [("monday", "I prefer tea over coffee."), ("tuesday", "Do I prefer tea or coffee?")]:
        state = agent.invoke(
            {"messages": [HumanMessage(text)]},
            {"configurable": {"thread_id": thread}},
            context=Identity(tenant="acme", user="ana"),
        )
        print(f"{thread}: {state['messages'][-1].text}")
