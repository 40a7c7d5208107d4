"""Talk to an agent that remembers: `everthread chat`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.home import Here, Model, with_home
from everthread.cli.output import clean, on_terminal, print_json, say
from everthread.errors import UsageError

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

__all__ = ["chat"]


@with_home
def chat(
    here: Here,
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="One message; without it you are asked for each.")
    ] = None,
    thread: Annotated[str, typer.Option("--thread", metavar="NAME", help="The conversation to go on with.")] = "main",
    model: Model = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show what each node did and why.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Finish a turn that was interrupted first.")] = False,
) -> None:
    """Talk to an agent that remembers across threads. Without --model it is offline and repeats memory.

    \b
    Examples:
      everthread chat
      everthread chat "I prefer short reports." --thread monday --trace
      everthread chat "How do I like my reports?" --thread tuesday --json
      echo "What do you know about me?" | everthread chat
      everthread chat --model openai:gpt-4.1-mini
    """
    from everthread.graphs import create_memory_agent
    from everthread.nodes.models import load_model
    from everthread.stores import open_checkpointer
    from everthread.stores.threads import thread_config

    loaded = load_model(model) if model else None
    config: RunnableConfig = thread_config(here.identity, thread)  # type: ignore[assignment]  # a plain dict of one
    with here.open_store() as store, open_checkpointer(here.url) as saver:
        agent = create_memory_agent(loaded).compile(checkpointer=saver, store=store)
        if agent.get_state(config).next and not resume:
            say("the last turn of this thread was interrupted; --resume finishes it", err=True)
        inputs: Iterator[Any] = _messages(message)
        if resume:
            inputs = iter([None, *inputs]) if message or not on_terminal() else _resumed(inputs)
        for given in inputs:
            _turn(here, agent, config, given, trace)


def _resumed(inputs: Iterator[Any]) -> Iterator[Any]:
    yield None
    yield from inputs


def _messages(message: str | None) -> Iterator[str]:
    """The messages to send: the one given, else each line that is typed, else the whole of a pipe."""
    if message is not None:
        yield message
    elif sys.stdin.isatty():
        say("Talk; an empty line or Ctrl-D ends.")
        while said := _typed():
            yield said
    elif said := sys.stdin.read().strip():
        yield said
    else:
        raise UsageError("no message; write everthread chat MESSAGE, or pipe one in")


def _typed() -> str:
    try:
        return input("> ").strip()
    except EOFError:
        return ""


def _turn(here: Here, agent: Any, config: RunnableConfig, said: str | None, trace: bool) -> None:
    """One turn; `said` None finishes an interrupted one."""
    from everthread.cli.reports import ChatTurn

    events: list[dict[str, Any]] = []
    given = {"messages": [("user", said)]} if said is not None else None
    for event in agent.stream(given, config, context=here.identity, stream_mode="custom"):
        events.append(event)
        if trace and not here.json:
            details = ", ".join(
                f"{key}={value}" for key, value in event.items() if key not in ("node", "event") and value
            )
            say(clean(f"  {event['node']}: {event['event']}" + (f" ({details})" if details else "")))
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
