"""An API server in memory, for looks at files instead of a cluster.

`server.Server` holds the objects, `eviction.Stored` is a client that lists them and tries evictions. What requests do
to them, and faults, are in tests/reconciler/memory.
"""
