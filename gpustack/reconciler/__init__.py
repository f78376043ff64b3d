"""The program in the cluster: labels GPU nodes, rolls drivers, changes MIG geometry, and never leaves a node behind.

A functional core in an imperative shell. A pass reads the cluster into a `snapshot.Snapshot`, `engine.decide` makes of
it a `actions.Decision` without touching anything, and the shell carries that out. So `--plan` is the same code without
the last step, a crash between two writes is only another snapshot, and the model tests drive the core a million times.

::

    cluster.py    the five requests that the program makes, as a protocol; client.py is the real one, testing/ the fake
    wire.py       what the API server's bytes mean: objects, lines of a watch, errors
    watch.py      one list-and-watch loop, for every kind
    gather.py     what a pass needs to know, read in a bounded number of requests
    refusals.py   evictions that were refused, and when to ask again
    engine.py     snapshot -> decision: membership, labeller, due, budget, phases, status, each a module
    perform.py    decision -> requests
    lease.py      who may write, and the fence that keeps a late write of a former leader out
    runner.py     the loop around all of it; __main__.py starts it, access.py sees first that it may do its work
    uninstall.py  gives every node back
    events.py, metrics.py, report.py, log.py, health.py: what people see

State is on the Node alone (record.py), so nothing in memory is needed to resume. Nothing here imports cdk8s, the policy
language or the compiler: the image holds a dozen small packages.
"""
