"""Looking at clusters, read-only: what runs, held against what the policy says.

A `State` is what was seen of a cluster, whoever looked: a person's login, or a dump. Everything here is a pure function
of a state and of what is expected; nothing writes, and nothing asks for more than lists.

`__main__.py` is `verify` in the cluster, in the reconciler's image: it and what it imports know neither the policy nor
its meaning, and import-linter says so.
"""
