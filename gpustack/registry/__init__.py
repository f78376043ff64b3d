"""Registries of container images, asked by the OCI distribution API: `lock` and `push` alone use the network.

One seam: client.py speaks HTTP, all else is data. reference.py says where an image lives, credentials.py who asks,
trouble.py what went wrong, waiting.py runs what may hang, resolve.py says what a tag stands for, artifact.py what a
rendered cluster is as an artifact.

Rejected: the `oras` package. It brings `requests` and a way of its own to keep credentials, and knows no retries; what
is needed here are six requests.
"""
