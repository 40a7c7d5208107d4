"""A supervisor with two sub-agents: each has its own memory, the user's is shared, only the supervisor learns."""

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import StateGraph
from langgraph.runtime import Runtime

from everthread import Authority, Identity, MemoryContext, MemoryState, Record, Scope
from everthread.graphs import MemoryMiddleware, gate
from everthread.nodes import Extract, as_agent
from everthread.nodes.reason import OfflineModel  # stands in for your ChatOpenAI or ChatAnthropic
from everthread.stores import open_checkpointer, open_store
from everthread.stores.record import Change, Provenance, now_utc

ana = Identity(tenant="acme", user="ana")


def sub_agent(name: str):
    # It keeps no state of its own, and leaves inputs and notices to the supervisor.
    agent = create_agent(OfflineModel(), middleware=[MemoryMiddleware(deliver=False)], checkpointer=False)

    def node(state: MemoryState, runtime: Runtime[MemoryContext]) -> MemoryState:
        # Not the user's words: the name says so, and nothing is learnt from it as if they were.
        brief = HumanMessage("Which sources do reports use?", name="supervisor")
        reply = agent.invoke({"messages": [brief]}, context=as_agent(runtime, name))
        return {"messages": [AIMessage(reply["messages"][-1].text, name=name)]}

    return node


def heuristic(agent: str, statement: str) -> Change:
    """What a curator lets one agent know."""
    record = Record(
        statement=statement,
        content_type="procedural",
        scope=Scope(owner="agent", owner_id=agent),
        agent_family=agent,
        provenance=Provenance(source="user", actor="carla", extracted_by="curator", observed_at=now_utc()),
        authority=Authority.USER_EXPLICIT,
        write_reason="reviewed",
    )
    return Change(action="create", record=record, rule="curated", reason="a curator wrote it")


graph = StateGraph(MemoryState, context_schema=MemoryContext)
graph.add_sequence([("researcher", sub_agent("researcher")), ("writer", sub_agent("writer")), ("extract", Extract())])
graph.set_entry_point("researcher")

with open_store("sqlite:./data") as store, open_checkpointer("sqlite:./data") as saver:
    for name, source in [("researcher", "the archive"), ("writer", "the style guide")]:
        carla = Identity(tenant="acme", user="carla", agent=name, roles={"curator"})
        store.commit(carla, [heuristic(name, f"Reports use {source} as their source.")], key=f"curated:{name}")

    supervisor = gate(graph.compile(checkpointer=saver, store=store))
    question = {"messages": [HumanMessage("I prefer short reports. Write one.")]}
    state = supervisor.invoke(question, {"configurable": {"thread_id": "a"}}, context=ana)
    for message in state["messages"][1:]:
        print(f"{message.name}: {message.text}")
    print("learnt:", [record.statement for record in store.records(ana)])
