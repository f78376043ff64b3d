"""gpustack why: from what one sees of a pod or a node to the cause. Looks, and changes nothing."""

import argparse

from . import verify
from .refusals import refusal


def run(options: argparse.Namespace) -> int:
    from ..api.expectations import Kind
    from ..live import why
    from .live import files

    asked = options.target.split("/")
    if asked[0] not in why.KINDS or len(asked) != (3 if asked[0] == "pod" else 2) or not all(asked):
        raise refusal("GPU026", "no target", target=options.target)
    log = ""
    if options.log and asked[0] in {"node", "nodepolicy"}:
        raise refusal("GPU026", "no container", target=options.target)
    if options.log:
        log = files.text(options.log, "kubectl logs POD > FILE")
    space = asked[1] if asked[0] == "pod" else ""
    pods = [Kind("v1", "Pod"), Kind("v1", "ResourceQuota", space)] if space else []
    source, expected, state, located = verify.looked(
        options, lambda stack: [*pods, Kind("v1", "Event", space or stack)]
    )
    space = space or (expected.namespace if asked[0] == "daemonset" else "")
    reasons = why.why(expected, state, why.Target(why.KINDS[asked[0]], asked[-1], space), log)
    return verify.tell(options, {source: [located(each) for each in reasons]}, "why")
