"""The commands of the steps, as lines for a shell.

A command is made of words, and each is quoted: names come from a cluster, or from a file that somebody sent.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any, get_args

from gpustack.model import Body, Stage

from .acts import Act
from .plan import Render
from .seen import facts, kinds, plain_name, space


@dataclass(frozen=True)
class Commands:
    """KUBECTL are the words by which each command for the cluster begins."""

    kubectl: Sequence[str]

    def made(self, name: str, **values: str | list[str]) -> str:
        """The command NAME of the data file for the cluster, with VALUES in it."""
        return filled(facts()["commands"][name], self.kubectl, **values)

    def of(self, body: Body, name: str) -> str:
        """The command NAME for BODY."""
        return self.made(name, object=object_of(body))

    def acts(self, acts: Sequence[Act]) -> Iterator[str]:
        """The commands for ACTS that are patches, deletions, or the nodes' return."""
        for act in acts:
            if act.subresource and act.patch:
                yield self.made("scale", object=object_of(act.body), replicas=str(act.patch["spec"]["replicas"]))
            elif act.patch:
                yield self.patch(object_of(act.body), act.patch)
            elif act.verb == "delete":
                yield self.of(act.body, "delete")
            elif act.verb == "release":
                yield self.ours("gpustack reconciler uninstall --keep-labels --yes")

    def into(self, file: str, name: str, **values: str | list[str]) -> str:
        """The command NAME, what it prints in a FILE that nobody else can read."""
        return f"(umask 077; {self.made(name, **values)} > {shlex.quote(file)})"

    def patch(self, target: list[str], patch: Any, how: str = "merge") -> str:
        """The command that patches TARGET."""
        return self.made("patch", object=target, how=how, patch=json.dumps(patch, separators=(",", ":")))

    def ours(self, text: str) -> str:
        """TEXT, a command of our own, for the same cluster."""
        return shlex.join([*text.split(), *self.kubectl[1:]])

    def looks(self, names: Sequence[str]) -> list[str]:
        """The commands that dump the kinds NAMES: kubectl refuses a list of kinds of which it doesn't know one."""
        known = [kinds()[name] for name in names]
        groups = [[kind for kind in known if kind.built_in], *([kind] for kind in known if not kind.built_in)]
        return [self.made("look", resources=",".join(kind.resource for kind in each)) for each in groups if each]

    def gone(self, body: Body) -> str:
        """The command that waits for the pods of the Deployment BODY to go."""
        selector = (body["spec"].get("selector") or {}).get("matchLabels") or {}
        labels = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
        return self.made("gone", namespace=space(body), labels=labels)

    def applying(self, render: Render) -> Iterator[str]:
        """The commands that apply RENDER but for the reconciler: by hand, or by the engine of the policy."""
        yield shlex.join(["gpustack", "render", render.cluster])
        folder, engine = f"{render.folder}/{render.cluster}", render.engine
        if not render.applies:
            stages = [each for each in get_args(Stage) if each != "reconciler" and each in dict(render.bodies)]
            if "driver" in stages:
                yield self.made("diff", folder=f"{folder}/driver")
            yield from (self.made("apply", folder=f"{folder}/{stage}") for stage in stages)
            return
        if render.replicas:
            yield f"# first, in the policy: spec.reconciler.replicas: 0 (it is {render.replicas}); render it again"
        if render.applies.override:
            at, words = "/spec/template/spec/containers/0/args/-", facts()["managers"]
            more = [{"op": "add", "path": at, "value": f"--override-manager={word}"} for word in words]
            target = named("Deployment", render.applies.override, render.engine_namespace)
            yield self.patch(target, more, "json")
        yield f"# commit and merge {shlex.quote(folder)}, then, where {engine} runs:"
        yield f"{shlex.join(['gpustack', 'bootstrap', render.cluster])} | kubectl apply --server-side -f -"

    def again(self, render: Render) -> Iterator[str]:
        """The commands that apply RENDER once more."""
        if not render.applies:
            yield from (each for each in self.applying(render) if " apply " in each)
            return
        for body in render.syncs:
            if body["kind"] == render.applies.kind:
                yield filled(render.applies.again, (), name=body["metadata"]["name"], namespace=space(body))

    def starting(self, render: Render) -> Iterator[str]:
        """The commands that start the reconciler of RENDER."""
        if render.engine:
            yield "# in the policy: spec.reconciler.replicas back to what it was; render, commit and merge"
        else:
            yield self.made("apply", folder=f"{render.folder}/{render.cluster}/reconciler")
        yield self.ours("gpustack rollout plan")


def filled(text: str, program: Sequence[str], **values: str | list[str]) -> str:
    """TEXT, a command of PROGRAM with VALUES in it, for a shell: what is a word stays one."""
    words, single = list(program), {key: each for key, each in values.items() if isinstance(each, str)}
    for word in text.split():
        value = values.get(word.removeprefix("$"))
        words += value if isinstance(value, list) else [Template(word).substitute(single)]
    return shlex.join(words)


def named(kind: str, name: str, namespace: str = "", api_version: str = "") -> list[str]:
    """The words by which kubectl finds the object NAME of KIND, group and namespace included."""
    plain_name(name, kind)
    known, (group, _, version) = kinds().get(kind), api_version.rpartition("/")
    plain = known.resource if known else f"{kind}.{version}.{group}" if group else kind
    return [f"{plain}/{name}", *([f"--namespace={namespace}"] if namespace else [])]


def object_of(body: Body) -> list[str]:
    """The words by which kubectl finds BODY."""
    return named(body["kind"], str(body["metadata"]["name"]), space(body), str(body.get("apiVersion", "")))
