"""Who may use the agent behind LangGraph's server: a table of tokens, where yours asks your identity provider.

`identity` is all that LangGraph's own records need, so it is an id that says nothing; `everthread` is on whose behalf
memory works, and no client can choose it. What no handler allows is refused: above all the store's routes, which would
read every user's memory.
"""

import hashlib

from langgraph_sdk import Auth

auth = Auth()

# SHA-256 of each token, so that this file does not hold one. (The tokens here are "token-of-ana" and "token-of-ben".)
USERS = {
    "c1f2eb9b29ea47f3d0de75a25751647c97542f10e667666a89e4a2d0e849f15f": {
        "identity": "u-4821",
        "everthread": {"tenant": "acme", "user": "ana"},
    },
    "16367673c9f51156924ed926515b730647f5f12531889a7b9e8a55a38cbf8b01": {
        "identity": "u-7310",
        "everthread": {"tenant": "acme", "user": "ben"},
    },
}


@auth.authenticate
async def authenticate(authorization: str | None) -> dict:
    scheme, _, token = (authorization or "").partition(" ")
    user = USERS.get(hashlib.sha256(token.encode()).hexdigest())
    if scheme != "Bearer" or user is None:
        raise Auth.exceptions.HTTPException(status_code=401, detail="unknown token")
    return user


@auth.on
async def nothing_else(ctx: Auth.types.AuthContext, value: dict) -> bool:
    return False


@auth.on.threads
async def threads_are_their_owners(ctx: Auth.types.AuthContext, value: dict) -> dict:
    mine = {"owner": ctx.user.identity}
    if ctx.action in ("create", "create_run", "update"):
        value.setdefault("metadata", {}).update(mine)
    return mine


@auth.on.assistants(actions=["read", "search"])
async def the_agent_is_everybodys(ctx: Auth.types.AuthContext, value: dict) -> bool:
    return True
