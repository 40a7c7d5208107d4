"""Memory in an agent that LangChain's `create_agent` made: one middleware."""

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage

from everthread import Identity, MemoryState
from everthread.graphs import MemoryMiddleware, gate
from everthread.nodes.reason import OfflineModel  # stands in for your ChatOpenAI or ChatAnthropic
from everthread.stores import open_checkpointer, open_store

ana = Identity(tenant="acme", user="ana")

with open_store("sqlite:./data") as store, open_checkpointer("sqlite:./data") as saver:
    agent = gate(
        create_agent(
            OfflineModel(),
            system_prompt="You answer briefly.",
            middleware=[MemoryMiddleware()],  # first in the list
            state_schema=MemoryState,  # small checkpoints; without it the agent's own state works, too
            checkpointer=saver,
            store=store,
        )
    )
    for thread, text in [
        ("monday", "I prefer tea over coffee."),
        ("tuesday", "Do I prefer tea or coffee?"),
        ("tuesday", "Remember that I live in Lisbon."),  # the model calls memory_save
    ]:
        state = agent.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}}, context=ana)
        print(f"{thread}: {state['messages'][-1].text}")
