"""Recall before an agent of yours and remember after it, with a review of what would hold for everybody."""

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from everthread import Identity, MemoryContext, MemoryState
from everthread.graphs import create_recall_graph, create_remember_graph, gate
from everthread.nodes import memory_block
from everthread.nodes.extract import Candidate
from everthread.stores import open_checkpointer, open_store


class Policies:
    """An extractor of yours: it proposes, code decides. What the user says "must" be is a rule of the organization."""

    id = "policies/1"
    calls_model = False

    def propose(self, window):
        yield from ()  # no model is asked
        return [
            Candidate(statement=line.text, owner="organization", messages=(number,), write_reason="a policy")
            for number, line in enumerate(window.lines, 1)
            if line.source == "user" and " must " in line.text
        ]


def answer(state: MemoryState, runtime: Runtime[MemoryContext]) -> MemoryState:
    return {"messages": [AIMessage(memory_block(state, runtime) or "I know nothing about that.")]}


graph = StateGraph(MemoryState, context_schema=MemoryContext)
graph.add_node("recall", create_recall_graph().compile(checkpointer=False))
graph.add_node("answer", answer)
graph.add_node("remember", create_remember_graph(Policies()).compile())
graph.add_edge(START, "recall")
graph.add_edge("recall", "answer")
graph.add_edge("answer", "remember")

ana = Identity(tenant="acme", user="ana", organization="acme")
carla = ana.model_copy(update={"roles": frozenset({"curator"})})

with open_store("sqlite:./data") as store, open_checkpointer("sqlite:./data") as saver:
    agent = gate(graph.compile(checkpointer=saver, store=store))
    rule = {"messages": [HumanMessage("Every deploy must have two approvals.")]}
    waiting = agent.invoke(rule, {"configurable": {"thread_id": "a"}}, context=ana)

    # The record is in the store, pending; the interrupt names it, and not its words.
    (shown,) = waiting["__interrupt__"][0].value["review"]
    print(f"to review: {store.record(carla, shown['id']).statement} ({shown['scope']})")
    agent.invoke(Command(resume={shown["id"]: "approve"}), {"configurable": {"thread_id": "a"}}, context=carla)

    question = {"messages": [HumanMessage("How many approvals must a deploy have?")]}
    state = agent.invoke(question, {"configurable": {"thread_id": "b"}}, context=ana)
    print(state["messages"][-1].text)
