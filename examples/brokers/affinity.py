#!/usr/bin/env python3
"""A custom broker that is a program: requests with the same key, the part of their UserData before a colon, go to the same service instance.

docs/custom-broker-programs.md has the contract. Nothing but Python's own library is needed.
"""
import json
import os
from collections import Counter
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

COMING = ("Queued", "Dispatching", "Running")

home = {}   # key -> id of its dispatcher. The broker keeps it, and gives it back when it starts this program again.
tasks = {}  # id -> state, as far as we were told


def on_session_start(call):
    home.update(call["state"])
    return {}


def on_task_state_changed(call):
    for task in call["tasks"]:
        tasks[task["Id"]] = task["State"]
    return {}


def choose_dispatcher(call):
    there = [dispatcher["id"] for dispatcher in call["dispatchers"]]
    keys = Counter(home.values())
    choices, new = [], {}
    for request in call["requests"]:
        key = request.get("userData", "").split(":")[0]
        chosen = home.get(key)
        if chosen not in there and tasks.get(chosen) in COMING:
            choices.append("wait")  # a broker that was raised again has not reached it yet
            continue
        if chosen not in there:  # a new key, or its instance is gone
            chosen = min(there, key=lambda id: keys[id])
            keys[chosen] += 1
            home[key] = new[key] = chosen
        choices.append(chosen)  # busy or not: the request waits for it
    return {"result": choices, "state": {"set": new}}


HOOKS = {
    "onSessionStart": on_session_start,
    "onTaskStateChanged": on_task_state_changed,
    "chooseDispatcher": choose_dispatcher,
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # the connection stays open
    disable_nagle_algorithm = True  # and an answer is not held back

    def do_GET(self):
        self.answer({"name": "affinity", "hooks": list(HOOKS)})

    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.answer(HOOKS[self.path[1:]](call))

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass  # what is printed goes to the broker's log


url = urlsplit(os.environ["SOA_LISTEN_URL"])
HTTPServer((url.hostname, url.port), Handler).serve_forever()
