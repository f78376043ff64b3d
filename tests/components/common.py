"""Inputs for tests of components, and reading what a construct renders."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import cdk8s

from gpustack.components.component import Component
from gpustack.components.parts.common_inputs import Common, Inputs, Validation
from gpustack.model import Body
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.loading import layers
from gpustack.policy.loading.defaults import assemble

VALIDATOR = Validation(image="registry.example/validator:1", pull_policy="IfNotPresent")
_ids = itertools.count()


def common(**changes: Any) -> Common:
    """What steers every DaemonSet, as the defaults of a release have it; CHANGES replace fields."""
    return Common(**{"namespace": "gpu-operator", "validation": VALIDATOR, **changes})


def validation(**changes: Any) -> Validation:
    """The validator's part of `common`, with CHANGES."""
    return VALIDATOR.model_copy(update=changes)


@functools.cache
def chart() -> cdk8s.Chart:
    """One chart for all tests of a process: starting Node costs more than they do."""
    return cdk8s.Chart(cdk8s.App(), "test", disable_resource_name_hashes=True)


def render(construct: type[Component[Any]], inputs: Inputs) -> dict[str, Body]:
    """The bodies that CONSTRUCT makes of INPUTS, by "Kind/name"."""
    made = construct(chart(), f"test-{next(_ids)}", inputs).resources()
    return {f"{resource.kind}/{resource.name}": resource.body for resource in made}


def pod_of(bodies: dict[str, Body], name: str) -> Body:
    """The pod spec of the DaemonSet NAME."""
    spec: Body = bodies[f"DaemonSet/{name}"]["spec"]["template"]["spec"]
    return spec


def container(pod: Body, name: str) -> Body:
    """The container or init container NAME of POD."""
    found: Body = next(each for each in [*pod.get("initContainers", []), *pod["containers"]] if each["name"] == name)
    return found


def env(body: Body) -> dict[str, Any]:
    """The environment of a container: the value of each variable, or the path of its field."""
    return {
        entry["name"]: entry["value"] if "value" in entry else entry["valueFrom"]["fieldRef"]["fieldPath"]
        for entry in body.get("env", [])
    }


def mounts(pod: Body, name: str) -> dict[str, Body]:
    """The mounts of container NAME by path, each with its volume's source under "from"."""
    sources = {volume["name"]: volume for volume in pod["volumes"]}
    return {
        mount["mountPath"]: {**mount, "from": sources[mount["name"]]} for mount in container(pod, name)["volumeMounts"]
    }


def grants(role: Body) -> set[str]:
    """The rights of a Role or ClusterRole, each as "resource:verb", with "=name" where they are for named objects."""
    return {
        f"{resource}{''.join('=' + name for name in rule.get('resourceNames', []))}:{verb}"
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def spec(release: str = "v26.7.0", **sections: Any) -> ClusterPolicySpec:
    """The spec of a policy that says SECTIONS, over the defaults of RELEASE."""
    cluster = {"kubernetesVersion": "1.34", **sections.pop("cluster", {})}
    policy = layers.Part("policy", "test", {"release": release, "cluster": cluster, **sections})
    return ClusterPolicySpec.model_validate(assemble([policy])[0].spec)
