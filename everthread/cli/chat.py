"""Talk to an agent that remembers: `everthread chat`."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.home import Here, Model, with_home
from everthread.cli.output import clean, print_json, say, when
from everthread.errors import EverthreadError, ModelReplyError, UsageError

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from everthread.stores.contract import MemoryStore
    from everthread.stores.identity import Identity

__all__ = ["chat"]

_COMPACT = re.compile(r"\s*/compact(?:\s+(?P<turns>\d{1,6}))?\s*$")


@with_home
def chat(
    here: Here,
    message: Annotated[
        str | None,
        typer.Argument(
            metavar="MESSAGE", help="One message; without it you are asked for each. A pipe is one message, whole."
        ),
    ] = None,
    thread: Annotated[
        str, typer.Option("--thread", metavar="NAME", help="The conversation to go on with, by its name or id.")
    ] = "main",
    model: Model = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show what each node did and why.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="First finish a turn that was interrupted.")] = False,
) -> None:
    """Talk to an agent that remembers across threads. Without --model it is offline and repeats memory.

    What a turn keeps or refuses to keep is said on standard error. The message /compact puts a summary in place of all
    but the last turn, /compact 5 of all but the last five; every message stays stored.

    \b
    Examples:
      everthread chat
      everthread chat "I prefer short reports." --thread monday --trace
      everthread chat "How do I like my reports?" --thread tuesday --json
      echo "What do you know about me?" | everthread chat
      everthread chat "/compact 5" --thread monday
      everthread chat --model openai:gpt-4.1-mini
    """
    from everthread.cli.jobs import mention
    from everthread.graphs import create_memory_agent
    from everthread.nodes.models import load_model
    from everthread.stores import open_checkpointer

    loaded = load_model(model) if model else None
    with here.open_store() as store, open_checkpointer(here.url) as saver:
        thread_id = here.thread_id(store, thread)
        mention(here, store)
        if thread_id != thread:
            store.transcripts.bind(here.identity, thread_id, name=thread)
        config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
        agent = create_memory_agent(loaded).compile(checkpointer=saver, store=store)
        # not `next`: that leaves out a step whose result is kept already, while the turn is not over
        interrupted = bool(agent.get_state(config).tasks)
        if interrupted and not resume:
            say("the last turn of this thread was interrupted; --resume finishes it", err=True)
        if resume and not interrupted:
            say("no turn of this thread was interrupted; there is nothing to resume", err=True)
        unfinished = [None] if resume and interrupted else []
        for given in chain(unfinished, _messages(message, needed=not resume)):
            if given is not None and (asked := _COMPACT.match(given)):
                _compact(here, store, agent, config, int(asked["turns"] or 1))
                continue
            try:
                _turn(here, store, agent, config, given, trace)
            except Exception as error:  # a provider's errors have no type in common
                if isinstance(error, EverthreadError) or not is_the_models(error):
                    raise
                raise ModelReplyError(
                    f"{model} did not answer: {error}; your message is kept, and --resume asks again"
                ) from error


def is_the_models(error: Exception) -> bool:
    """Whether the error came out of the chat model, and not out of the code around it."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__") == "langchain_core.language_models.chat_models" for frame, _ in frames)


def _messages(message: str | None, *, needed: bool) -> Iterator[str]:
    """The messages to send: the one given, else each line that is typed, else the whole of a pipe, which may be empty
    unless a message is `needed`."""
    if message is not None and message.strip():
        yield message
    elif message is None and sys.stdin.isatty():
        say("Talk; an empty line or Ctrl-D ends.")
        while said := _typed():
            yield said
    elif message is None and (said := sys.stdin.read().strip()):
        yield said
    elif needed:
        raise UsageError("no message; write everthread chat MESSAGE, or pipe one in")


def _typed() -> str:
    try:
        return input("> ").strip()
    except EOFError:
        return ""


def _turn(here: Here, store: MemoryStore, agent: Any, config: RunnableConfig, said: str | None, trace: bool) -> None:
    """One turn; `said` None finishes an interrupted one."""
    from everthread.cli.reports import ChatTurn
    from everthread.stores.display import told

    events: list[dict[str, Any]] = []
    given = {"messages": [("user", said)]} if said is not None else None
    for event in agent.stream(given, config, context=here.identity, stream_mode="custom"):
        events.append(event)
        if trace and not here.json:
            details = told({key: value for key, value in event.items() if value and key not in ("node", "event")})
            say(f"  {event['node']}: {event['event']}" + (f" ({details})" if details else ""))
    state = agent.get_state(config).values
    messages = state.get("messages", [])
    reply = messages[-1].text if messages else ""
    if here.json:
        print_json(
            ChatTurn(
                thread_id=config["configurable"]["thread_id"],
                reply=reply,
                recalled=state.get("recalled", []),
                receipts=state.get("receipts", []),
                events=events if trace else None,
            )
        )
    else:
        say(clean(reply))
        if not trace:
            for line in _learnt(store, here.identity, events):
                say(line, err=True)


def _compact(here: Here, store: MemoryStore, agent: Any, config: RunnableConfig, keep_turns: int) -> None:
    """Compaction on request, and what stands for the older messages then."""
    from everthread.cli.reports import Compaction
    from everthread.graphs import compact_now

    changed = compact_now(agent, config, context=here.identity, keep_turns=keep_turns)
    state = agent.get_state(config).values
    window = state.get("window", {})
    ids = [message.id for message in state.get("messages", [])]
    artifact = store.artifacts.get(here.identity, window["summary"]) if "summary" in window else None
    done = Compaction(
        thread_id=config["configurable"]["thread_id"],
        changed=changed,
        messages=ids.index(window["cut"]) if window.get("cut") in ids else 0,
        summary=artifact.text if artifact else "",
    )
    if here.json:
        print_json(done)
    elif not changed:
        say("nothing to compact: what is said is short, or nothing was said since the last time")
    else:
        say(f"a summary stands for the first {done.messages} messages now:", err=True)
        say(clean(done.summary))


def _learnt(store: MemoryStore, identity: Identity, events: list[dict[str, Any]]) -> Iterator[str]:
    """What the turn kept and what it refused, a line each; `--trace` says more."""
    for event in events:
        match event["event"]:
            case "refused":
                yield f"  not kept: {event['reason']} ({event['rule']})"
            case "reminder":
                yield f"  a reminder for {when(datetime.fromisoformat(event['due_at']))} UTC"
            case "receipt":
                for decision in event["decisions"]:
                    record = store.record(identity, decision["record_id"]) if decision.get("record_id") else None
                    if record and decision["outcome"] in ("created", "superseded", "narrowed", "contested", "revised"):
                        yield f"  {'waits for review' if record.status == 'pending' else 'kept'}: {record.statement}"
