"""Does the user agree to be learnt from? `everthread consent`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.home import Here, with_home
from everthread.cli.output import print_json, say
from everthread.errors import UsageError

if TYPE_CHECKING:
    from everthread.stores.identity import Memory

__all__ = ["consent"]

MEANS: dict[Memory, str] = {
    "on": "memory is learnt and recalled",
    "read": "memory is recalled, and nothing is learnt",
    "off": "memory is neither learnt nor recalled",
}


@with_home
def consent(
    here: Here,
    memory: Annotated[
        str | None, typer.Argument(metavar="on|read|off", show_default=False, help="What you agree to.")
    ] = None,
) -> None:
    """Say what you agree to, for all threads and agents on this store; without an argument, print it.

    What is stored can be listed, exported and erased whatever you choose.

    \b
    Examples:
      everthread consent
      everthread consent off
    """
    wanted = next((each for each in MEANS if each == memory), None)
    if memory is not None and wanted is None:
        raise UsageError(f"consent is on, read or off, not {memory!r}")
    with here.open_store() as store:
        if wanted is not None:
            store.set_consent(here.identity, wanted)
        chosen = store.consent(here.identity)
    if here.json:
        print_json({"user": here.user, "memory": chosen})
    else:
        say(f"{chosen}: {MEANS[chosen]}, for user {here.user}")
