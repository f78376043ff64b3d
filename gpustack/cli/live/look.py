"""Looking at a cluster with a person's rights: what is listed, what an apply would change, and what Prometheus says.

An object that looks otherwise than it is rendered may be what an apply comes to all the same: the API server writes
amounts in its own way, and webhooks change images. A dry run of that apply tells, where the login may patch.
"""

from collections.abc import Sequence
from typing import Any

from ...api.expectations import Expectation, Kind, kind_of
from ...live.objects import UP, differences
from ...live.state import State, look, name_of, raw
from ...reconciler.shell.cluster import ApiError

ANEW = ("managedFields", "resourceVersion", "generation")
"""What each write changes."""


async def looked_at(cluster: Any, expected: Expectation, kinds: Sequence[Kind], prometheus: str = "") -> State:
    """What there is of KINDS in CLUSTER, and what the PROMETHEUS says that is named, if one is."""
    state = await look(cluster, kinds)
    for body in expected.rendered:
        kind, live = kind_of(body), state.find(body)
        if kind in state.objects and live is not None and any(differences(body, live)):
            try:
                name = live["metadata"]["name"]
                made = (await cluster.apply(raw(kind), name, body, namespace=kind.namespace, dry_run=True)).body
            except ApiError:  # it may not, or can't: then it is as it looks
                continue
            metadata = {key: value for key, value in made["metadata"].items() if key not in ANEW}
            if not any(differences({**made, "metadata": metadata}, live)):
                state.settled.add((kind, name_of(body)))
    if prometheus:
        state.prometheus = await _said(cluster, prometheus, expected.namespace)
    return state


async def _said(cluster: Any, prometheus: str, namespace: str) -> dict[str, Any]:
    """Which rules the PROMETHEUS has, and how many targets in NAMESPACE answer it, or why it doesn't say so."""
    space, _, name = prometheus.partition("/")
    try:
        groups = (await cluster.proxied(space, name, "api/v1/rules", {}))["data"]["groups"]
        up = (await cluster.proxied(space, name, "api/v1/query", {"query": UP % namespace}))["data"]["result"]
        jobs = {str(one["metric"].get("job")): float(one["value"][1]) for one in up}
        return {"rules": [each for each in groups if isinstance(each, dict)], "up": jobs}
    except ApiError as error:
        return {"error": f"{prometheus}: {error}"}
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return {"error": f"{prometheus} answers, and not as a Prometheus does"}
