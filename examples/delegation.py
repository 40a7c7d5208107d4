"""Sub-agents in threads of their own: they return a report and not their transcript, at once or from the background."""

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import StateGraph
from langgraph.runtime import Runtime

from everthread import Identity, MemoryContext, MemoryState
from everthread.graphs import create_memory_agent, gate
from everthread.nodes import Extract, Restore, agent_jobs, delegate, delegate_later, job_handlers
from everthread.stores import Worker, open_checkpointer, open_store

ana = Identity(tenant="acme", user="ana", project="billing")
decided = "We decided to use PostgreSQL for the billing database because we need row-level security."

with open_store("sqlite:./data") as store, open_checkpointer("sqlite:./data") as saver:
    # Any graph that keeps its threads. Here it answers from memory.
    researcher = create_memory_agent().compile(checkpointer=saver, store=store)

    def supervise(state: MemoryState, runtime: Runtime[MemoryContext]) -> MemoryState:
        last = state["messages"][-1]
        if last.text.startswith("<notice>"):  # what the sub-agent found in the background
            return {"messages": [AIMessage(last.text)]}
        # With a label the sub-agent goes on in the thread that it has under it; without one each brief is a new thread.
        report = delegate(researcher, "Which database does billing use?", runtime, "researcher", label="billing")
        delegate_later("Why do we use PostgreSQL?", runtime, "researcher")
        return {"messages": [AIMessage(f"{report.conclusion.splitlines()[1]} Evidence: {report.evidence[0][:4]}...")]}

    graph = StateGraph(MemoryState, context_schema=MemoryContext)
    graph.add_sequence([("restore", Restore()), ("supervise", supervise), ("extract", Extract())])
    graph.set_entry_point("restore")
    supervisor = gate(graph.compile(checkpointer=saver, store=store))

    def say(thread: str, text: str, agent=supervisor) -> str:
        state = agent.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}}, context=ana)
        return state["messages"][-1].text

    say("monday", decided, agent=researcher)
    print("at once:", say("tuesday", "Look into the database."))

    # Elsewhere, in a process of its own or on a thread beside the program: `with Worker(...):`
    Worker(store, {**job_handlers(store), **agent_jobs(store, researcher, "researcher")}).drain()
    print("later:", say("tuesday", "Anything new?"))
    print("tasks:", [(task.text, task.status) for task in store.tasks.of(ana)])
