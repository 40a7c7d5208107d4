"""Ana says something in one thread and asks for it in another: `python talk.py`, while the server runs."""

import sys

from langgraph_sdk import get_sync_client

url = sys.argv[1] if sys.argv[1:] else "http://127.0.0.1:2024"

with get_sync_client(url=url, headers={"Authorization": "Bearer token-of-ana"}) as client:
    for text in ["I prefer window seats over aisle seats.", "Which seats do I prefer, window or aisle?"]:
        thread = client.threads.create()["thread_id"]
        state = client.runs.wait(thread, "agent", input={"messages": [{"role": "user", "content": text}]})
        print(f"ana: {text}\nagent: {state['messages'][-1]['content']}\n")
