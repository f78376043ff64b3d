"""Putting what a policy carries (policy/language/carried.py) into the pod template of its DaemonSet.

The template stays a pure function of the policy: what is carried holds while the template that it makes has the hash
which stands beside it. So the policy needs no edit in the very change that makes it void, and no state is kept.
"""

import copy
import hashlib
import json

from ...api import keys
from ...model import Body
from ...policy.language.carried import Carried, digests, misfits, words
from .common_inputs import Common


def carry(common: Common, body: Body) -> Body:
    """The DaemonSet BODY as the policy carries it; BODY itself where it carries nothing, or nothing that still holds.

    What has no place in the template is not carried at all, and a rule says so (checks/drivers/carried.py)."""
    name = body["metadata"]["name"]
    carried = next((each for each in common.carried if name in (each.name, each.called)), None)
    if carried is None or misfits(carried, body["spec"]["template"]["spec"]):
        return body
    template = copy.deepcopy(body["spec"]["template"])
    fill(carried, template["spec"])
    if carried.template not in (None, template_hash(template)):
        return body
    meta = body["metadata"]
    annotations = {**meta.get("annotations", {}), keys.CARRIED: carried.origin}
    return {**body, "metadata": {**meta, "annotations": annotations}, "spec": {**body["spec"], "template": template}}


def fill(carried: Carried, pod: Body) -> None:
    """Put what is CARRIED into the PodSpec POD."""
    for at, text in carried.texts.items():
        if place := words(pod, at):
            items, position = place
            items[position] = text.text
    if carried.without:
        init = [each for each in pod["initContainers"] if each["name"] not in carried.without]
        pod["initContainers"] = init
    if carried.tolerations is not None:
        pod["tolerations"] = [each.model_dump(exclude_none=True) for each in carried.tolerations]
    if carried.digest:
        for variable in digests(pod):
            variable["value"] = carried.digest
    if carried.volumes:
        order = {name: position for position, name in enumerate(carried.volumes)}
        pod["volumes"].sort(key=lambda volume: order.get(volume["name"], len(order)))


def template_hash(template: Body) -> str:
    """Names the pod template TEMPLATE."""
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:16]
