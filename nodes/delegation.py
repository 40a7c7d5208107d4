"""Sub-agents: a thread and a scope of their own, and a report instead of their transcript (R300 to R302, R305, R308).

    @tool
    def research(question: str, runtime: ToolRuntime) -> str:
        return str(delegate(researcher, question, runtime, "researcher"))

A sub-agent's run is a run of its own: another thread, its own gate, nothing of the parent's messages. What it found
comes back as conclusion, evidence and artifacts, by reference; the whole of it can be read in its thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from hashlib import sha256
from typing import Any, NamedTuple, ParamSpec, TypeVar

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER, CONFIG_KEY_SCRATCHPAD
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Interrupt, StateSnapshot, interrupt

from everthread.errors import ModelReplyError, UsageError
from everthread.nodes.eviction import EVICTED, is_evicted
from everthread.nodes.node import RunRuntime, as_agent, identity_of, store_of, thread_of
from everthread.stores.aside import aside
from everthread.stores.checkpoints.saver import Saver
from everthread.stores.contract import MemoryStore, Task
from everthread.stores.identity import Frozen, Identity, Memory, MemoryContext
from everthread.stores.jobs import Handlers, Job, wordless
from everthread.stores.threads import below, thread_id_for

__all__ = ["Report", "adelegate", "agent_jobs", "delegate", "delegate_later", "sub_thread"]

Given = ParamSpec("Given")
Result = TypeVar("Result")
Graph = CompiledStateGraph[Any, Any, Any, Any]
SHOWN = 20
"""Pieces of evidence that a report names at most, the newest."""
LAST_ATTEMPT = 5
"""After as many a job is given up (`Jobs.fail`)."""


class Report(Frozen):
    """What a sub-agent returns: what it concludes, and where that can be checked; none of what was said in between."""

    conclusion: str
    """Its answer."""
    evidence: tuple[str, ...] = ()
    """What it rests on: ids of memories that it cites, and `thread#message` for each tool result of its own thread."""
    artifacts: tuple[str, ...] = ()
    """Ids of the large results that it left in `store.artifacts`; `artifact_read` opens them."""

    def __str__(self) -> str:
        """As a tool returns it to the parent's model."""
        parts = [self.conclusion]
        parts += [f"Evidence: {', '.join(self.evidence)}"] if self.evidence else []
        parts += [f"Artifacts: {', '.join(self.artifacts)}"] if self.artifacts else []
        return "\n".join(parts)


def sub_thread(runtime: RunRuntime, agent: str, label: str | None = None, *, brief: str = "") -> RunnableConfig:
    """The config of a sub-agent's own thread: a new one for each brief of each call, or, with a `label`, the one that
    this agent has under this name in this thread, with what it said there before (R302). It goes with this thread, when
    that is erased or deleted.

    The same call gives the same thread when it is tried again after a crash or an interrupt. UsageError when the run
    has no thread.
    """
    name = _name_of(runtime, agent, label, brief)
    thread_id = f"{below(thread_of(runtime))}{thread_id_for(identity_of(runtime), name)}"
    return {"configurable": {"thread_id": thread_id}}


def delegate(
    graph: Graph,
    brief: str,
    runtime: RunRuntime,
    agent: str,
    label: str | None = None,
    *,
    memory: Memory = "read",
) -> Report:
    """Run a sub-agent on a brief, in its `sub_thread`, for the same user and with nothing else of the parent's.

    It learns nothing (R308), unless `memory="on"`, and is given no inputs and no notices. When the parent's step runs
    again after a crash, a brief that was answered is not run again, and one that was begun goes on from its last
    checkpoint. Compiled with `checkpointer=False` the graph keeps no thread: each run is new and ends with its call.

    Its `interrupt()` becomes one of the step that delegates: the parent's run ends with the question, and
    `Command(resume=...)` there gives the answer to the sub-agent, which goes on. Of several questions at once each is
    asked in its turn. After a crash at the moment at which an answer was handed on it is asked for again, rather than
    given to another question.

    Raises UsageError for a label without a checkpointer, for a graph with another checkpointer than the run around it,
    whose threads would not be erased with the parent's, and when the run waits for a person's answer and there is no
    run to ask it, or no thread to go on in. ModelReplyError when it ends without an answer.
    """
    run = _Run.of(graph, brief, runtime, agent, label, memory)
    before = apart(run.look) if graph.checkpointer else None
    questions = _Questions(run, runtime)
    questions.pass_over(questions.count())
    state, pending = run.answered(before), run.pending(before)
    if state is None and not pending:
        state = apart(run.go, before)
        pending = run.pending_in(state)
    while pending:
        answer = questions.ask(pending[0])
        questions.note()
        state = apart(run.resume, pending[0], answer)
        pending = run.pending_in(state)
    return run.report(state or {})


async def adelegate(
    graph: Graph,
    brief: str,
    runtime: RunRuntime,
    agent: str,
    label: str | None = None,
    *,
    memory: Memory = "read",
) -> Report:
    """`delegate` for asyncio."""
    run = await aside(_Run.of, graph, brief, runtime, agent, label, memory)
    before = await aapart(run.alook()) if graph.checkpointer else None
    questions = _Questions(run, runtime)
    questions.pass_over(await aside(questions.count))
    state, pending = run.answered(before), run.pending(before)
    if state is None and not pending:
        state = await aapart(run.ago(before))
        pending = run.pending_in(state)
    while pending:
        answer = questions.ask(pending[0])
        await aside(questions.note)
        state = await aapart(run.aresume(pending[0], answer))
        pending = run.pending_in(state)
    return run.report(state or {})


def delegate_later(brief: str, runtime: RunRuntime, agent: str, label: str | None = None) -> Task:
    """Let a sub-agent work in the background: a task of this thread, and a job for a worker that has `agent_jobs`.

    The parent goes on; the report reaches it as a notice, before its next reasoning step (R305). The same call makes
    one task.
    """
    identity, store, thread_id = identity_of(runtime), store_of(runtime), thread_of(runtime)
    key = f"agent:{_call_of(runtime, agent, brief)}"
    task = store.tasks.create(identity, brief, thread_id=thread_id, key=key)
    config = _named_thread(runtime, agent, label, brief)
    acting = as_agent(runtime, agent).identity.model_dump(mode="json", exclude_none=True)
    payload = {"task": task.id, "thread_id": config["configurable"]["thread_id"], "identity": acting}
    store.jobs.enqueue(identity, job_kind(agent), payload, key=key)
    return task


def agent_jobs(store: MemoryStore, graph: Graph, agent: str) -> Handlers:
    """What a worker needs to run this sub-agent in the background:
    `Worker(store, {**job_handlers(store), **agent_jobs(store, researcher, "researcher")})`.

    A run that fails is tried again in the same thread; the last time, or when it waits for an answer that nobody can
    give, the task has failed, with the reason.
    """

    def handle(job: Job) -> None:
        identity = Identity.model_validate({**job.payload["identity"], "tenant": job.tenant, "user": job.user})
        task = next((each for each in store.tasks.of(identity) if each.id == job.payload["task"]), None)
        if task is None or task.status not in ("scheduled", "running"):
            return  # erased, cancelled, or done before this worker died
        if task.status == "scheduled":
            store.tasks.start(identity, task.id)
        context = MemoryContext(identity=identity, memory="read", root=False)
        config: RunnableConfig = {"configurable": {"thread_id": job.payload["thread_id"]}}
        run = _Run(graph, HumanMessage(task.text, id=f"brief-{task.id}", name="supervisor"), config, context)
        try:
            before = run.look() if graph.checkpointer else None
            state = {"__interrupt__": waits} if (waits := run.pending(before)) else run.answered(before)
            report = run.report(run.go(before) if state is None else state)
        except Exception as error:  # whatever the graph raises: the task must say so in the end
            if isinstance(error, UsageError) or job.attempts >= LAST_ATTEMPT:
                store.tasks.finish(identity, task.id, wordless(error), failed=True)
            raise
        store.tasks.finish(identity, task.id, str(report))

    return {job_kind(agent): handle}


def job_kind(agent: str) -> str:
    """The kind of the jobs of an agent."""
    return f"agent:{agent}"


class _Run(NamedTuple):
    """A sub-agent's run on one brief."""

    graph: Graph
    brief: HumanMessage
    """Named, since it is not the user's word; its id says whether the thread has it already."""
    config: RunnableConfig
    context: MemoryContext

    @classmethod
    def of(cls, graph: Graph, brief: str, runtime: RunRuntime, agent: str, label: str | None, memory: Memory) -> _Run:
        if label and not graph.checkpointer:
            remedy = "compile it with a checkpointer, or leave out the label"
            raise UsageError(f"{agent} keeps no thread, so that {label!r} would be new each time; {remedy}")
        if _keeps_apart(graph):
            raise UsageError(
                f"{agent} keeps its threads in another place than the run that delegates, and they would be left when "
                "this thread is erased; compile both with the same checkpointer, or this one with checkpointer=False"
            )
        said = HumanMessage(brief, id=f"brief-{_call_of(runtime, agent, brief)}", name="supervisor")
        config = _named_thread(runtime, agent, label, brief)
        return cls(graph, said, config, as_agent(runtime, agent, memory=memory))

    def answered(self, before: StateSnapshot | None) -> Mapping[str, Any] | None:
        """The state in which this brief was answered already; None when there is something to run, or to ask."""
        if before is None or not self._is_begun(before) or before.tasks:
            return None
        return before.values

    def pending(self, before: StateSnapshot | None) -> tuple[Interrupt, ...]:
        """What this brief waits for a person to answer, always in the same order."""
        return _in_order(before.interrupts) if before is not None and self._is_begun(before) else ()

    def pending_in(self, state: Mapping[str, Any]) -> tuple[Interrupt, ...]:
        """The same, as a run ended; none where the graph keeps no thread in which it could go on."""
        return _in_order(state.get("__interrupt__", ())) if self.graph.checkpointer else ()

    def look(self) -> StateSnapshot:
        return self.graph.get_state(self.config)

    async def alook(self) -> StateSnapshot:
        return await self.graph.aget_state(self.config)

    def go(self, before: StateSnapshot | None) -> dict[str, Any]:
        state: dict[str, Any] = self.graph.invoke(self._given(before), self.config, context=self.context)
        return state

    async def ago(self, before: StateSnapshot | None) -> dict[str, Any]:
        state: dict[str, Any] = await self.graph.ainvoke(self._given(before), self.config, context=self.context)
        return state

    def resume(self, question: Interrupt, answer: Any) -> dict[str, Any]:
        given: Any = Command(resume={question.id: answer})
        state: dict[str, Any] = self.graph.invoke(given, self.config, context=self.context)
        return state

    async def aresume(self, question: Interrupt, answer: Any) -> dict[str, Any]:
        given: Any = Command(resume={question.id: answer})
        state: dict[str, Any] = await self.graph.ainvoke(given, self.config, context=self.context)
        return state

    def report(self, state: Mapping[str, Any]) -> Report:
        """What came of it; UsageError when it waits for a person, ModelReplyError when there is no answer."""
        self._check(state.get("__interrupt__", ()))
        if isinstance(structured := state.get("structured_response"), Report):
            return structured
        messages = list(state.get("messages", []))
        begun = next((n for n, message in enumerate(messages) if message.id == self.brief.id), 0)
        last = messages[-1] if messages else None
        if not isinstance(last, AIMessage) or not last.text.strip():
            raise ModelReplyError(f"a sub-agent ended without an answer, in thread {self.thread_id}; ask it again")
        results = [message for message in messages[begun:] if isinstance(message, ToolMessage)][-SHOWN:]
        places = [f"{self.thread_id}#{each.id}" for each in results if each.status != "error"]
        return Report(
            conclusion=last.text,
            evidence=(
                *(each["id"] for each in state.get("recalled", [])),
                *(places if self.graph.checkpointer else ()),
            ),
            artifacts=tuple(
                dict.fromkeys(each.additional_kwargs[EVICTED]["artifact"] for each in results if is_evicted(each))
            ),
        )

    @property
    def thread_id(self) -> str:
        return str(self.config["configurable"]["thread_id"])

    def _is_begun(self, before: StateSnapshot) -> bool:
        return any(message.id == self.brief.id for message in before.values.get("messages", []))

    def _given(self, before: StateSnapshot | None) -> Any:
        """The brief; None to go on with what a crash has left."""
        return None if before is not None and self._is_begun(before) else {"messages": [self.brief]}

    def _check(self, interrupts: Sequence[Interrupt]) -> None:
        if interrupts:
            raise self.nobody_to_ask()

    def nobody_to_ask(self) -> UsageError:
        """The error for a question that nobody can hand on."""
        return UsageError(
            f"the sub-agent in thread {self.thread_id} waits for a person's answer; resume that thread, or delegate "
            "within a run of a graph with a checkpointer, to a graph with one, where the question is handed on"
        )


class _Questions:
    """What a sub-agent asks a person, handed on as interrupts of the step that delegates.

    LangGraph runs that step again for each answer, from its beginning, and gives its interrupts the answers in their
    order. So those of questions that were answered are passed over first, as many as were handed on to the sub-agent:
    noted before each is, so that no answer ever meets another question."""

    def __init__(self, run: _Run, runtime: RunRuntime) -> None:
        self._run, self._kept = run, store_of(runtime).artifacts
        self._identity = identity_of(runtime)
        self._answered = 0

    def count(self) -> int:
        """How many answers this brief was given."""
        if not self._run.graph.checkpointer:
            return 0
        notes = self._kept.of_thread(self._identity, self._run.thread_id, kinds=("answered",))
        return sum(note.text.startswith(f"{self._run.brief.id} ") for note in notes)

    def pass_over(self, answered: int) -> None:
        """Take the answers that were given before, so that the next is the next question's."""
        for number in range(answered):
            self._interrupt(f"question {number + 1} of the sub-agent in thread {self._run.thread_id}, answered before")
        self._answered = answered

    def ask(self, question: Interrupt) -> Any:
        """A person's answer; ends the parent's run with the question until there is one."""
        schema = getattr(question, "response_schema", None)
        return self._interrupt(question.value, **({"response_schema": schema} if schema else {}))

    def note(self) -> None:
        """Note that an answer is about to be handed on."""
        self._answered += 1
        text = f"{self._run.brief.id} {self._answered}"
        self._kept.put(self._identity, "answered", text, thread_id=self._run.thread_id)

    def _interrupt(self, value: Any, **options: Any) -> Any:
        around = (var_child_runnable_config.get() or {}).get("configurable", {})
        if CONFIG_KEY_SCRATCHPAD not in around or not around.get(CONFIG_KEY_CHECKPOINTER):
            raise self._run.nobody_to_ask()
        return interrupt(value, **options)


def _keeps_apart(graph: Graph) -> bool:
    """Whether a graph keeps threads, and not where the run around this call keeps its own."""
    around = (var_child_runnable_config.get() or {}).get("configurable", {}).get(CONFIG_KEY_CHECKPOINTER)
    own = graph.checkpointer
    if not isinstance(own, BaseCheckpointSaver) or not isinstance(around, BaseCheckpointSaver) or own is around:
        return False
    return not isinstance(own, Saver) or not isinstance(around, Saver) or own.place != around.place


def _in_order(interrupts: Iterable[Interrupt]) -> tuple[Interrupt, ...]:
    """A run and its thread name them in different orders, and an answer must meet the question that was asked."""
    return tuple(sorted(interrupts, key=lambda each: each.id))


def apart(function: Callable[Given, Result], *args: Given.args, **options: Given.kwargs) -> Result:
    """Call it where LangGraph sees no run around it: it would make the sub-agent's run a step of the parent's."""
    return _outside().run(function, *args, **options)


async def aapart(work: Coroutine[Any, Any, Result]) -> Result:
    """`apart` for asyncio."""
    return await asyncio.create_task(work, context=_outside())


def _outside() -> Context:
    context = copy_context()
    context.run(var_child_runnable_config.set, None)
    return context


def _name_of(runtime: RunRuntime, agent: str, label: str | None, brief: str) -> str:
    """What the sub-agent's thread is called, as `everthread threads` shows it."""
    return f"{agent}/{label or _call_of(runtime, agent, brief)} of {thread_of(runtime)}"


def _named_thread(runtime: RunRuntime, agent: str, label: str | None, brief: str) -> RunnableConfig:
    """`sub_thread`, as a thread of the user's that has its name."""
    config, name = sub_thread(runtime, agent, label, brief=brief), _name_of(runtime, agent, label, brief)
    store_of(runtime).transcripts.bind(identity_of(runtime), config["configurable"]["thread_id"], name=name)
    return config


def _call_of(runtime: RunRuntime, agent: str, brief: str) -> str:
    """What is the same when a step of the parent's is tried again, and in no other call."""
    info = runtime.execution_info
    task_id, call_id = info.task_id if info else "", getattr(runtime, "tool_call_id", None) or ""
    parts = [part.encode("utf-8", "surrogatepass") for part in (thread_of(runtime), agent, task_id, call_id, brief)]
    return sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()[:32]
