"""The program in the cluster: labels GPU nodes, rolls drivers, changes MIG geometry, and never leaves a node behind.

A functional core in an imperative shell. A pass reads the cluster into a `snapshot.Snapshot`, `engine.decide` makes of
it an `actions.Decision` without touching anything, and the shell carries that out. So `--plan` is the same code without
the last step, a crash between two writes is only another snapshot, and the model tests drive the core a million times.

::

    core/engine.py      snapshot -> decision: labeller, due, budget, queue, phases, status, each a module;
                        phases.py empties a node, pods.py says which pods go, evictions.py when it is given up
    shell/cluster.py    the five requests that the program makes, as a protocol; client.py is the real one
    shell/wire.py       what the API server's bytes mean: objects, lines of a watch, errors
    shell/watch.py      one list-and-watch loop, for every kind
    shell/gather.py     what a pass needs to know, read in a bounded number of requests
    shell/refusals.py   evictions that were refused, and when to ask again
    shell/perform.py    decision -> requests
    shell/lease.py      who may write, and the fence that keeps a late write of a former leader out
    shell/runner.py     the loop around all of it; __main__.py starts it, access.py sees that it may do its work
    shell/uninstall.py  gives every node back
    shell/              events.py, metrics.py, report.py, log.py, health.py: what people see
    memory/             an API server in memory, for looks at files instead of a cluster

State is on the Node alone (core/record.py), so nothing in memory is needed to resume. Nothing here imports cdk8s, the
policy language or the compiler: the image holds a dozen small packages.
"""
