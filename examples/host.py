"""An agent of your own, as it was before: each thread begins with nothing."""

from typing import Annotated, TypedDict

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph
from langgraph.graph.message import add_messages

from everthread.nodes.reason import OfflineModel  # stands in for your ChatOpenAI or ChatAnthropic

model = OfflineModel()


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    language: str


def answer(state: State) -> State:
    system = SystemMessage("You answer briefly.")
    return {"messages": [model.invoke([system, *state["messages"]])]}


graph = StateGraph(State)
graph.add_sequence([("answer", answer)])
graph.set_entry_point("answer")

with SqliteSaver.from_conn_string("threads.db") as saver:
    agent = graph.compile(checkpointer=saver)
    for thread, text in [("monday", "I prefer tea over coffee."), ("tuesday", "Do I prefer tea or coffee?")]:
        state = agent.invoke(
            {"messages": [HumanMessage(text)]},
            {"configurable": {"thread_id": thread}},
        )
        print(f"{thread}: {state['messages'][-1].text}")
