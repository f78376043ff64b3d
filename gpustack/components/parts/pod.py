"""What a pod is made of: environment, volumes, containers.

Every component describes its pods with these value types, so that the rules which hold for all of them (who wins when
the policy sets a variable, where a host path points to) stand once. Nothing here knows the policy or cdk8s.

`body()` turns each into the plain dict that Kubernetes expects, without None and without empty fields.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from ...model import Body

Pairs = tuple[tuple[str, str], ...]
"""Environment as the policy gives it: (name, value), in order."""

Propagation = Literal["HostToContainer", "Bidirectional"]
SecurityContext = Mapping[str, Any]

PRIVILEGED: SecurityContext = {"privileged": True}
PRIVILEGED_ROOT: SecurityContext = {"privileged": True, "runAsUser": 0}
PRIVILEGED_S0: SecurityContext = {"privileged": True, "seLinuxOptions": {"level": "s0"}}
RESTRICTED: SecurityContext = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""Of programs that need nothing of their node: what Pod Security's `restricted` asks for, and a read-only root."""


def sparse(**fields: Any) -> Body:
    """The given fields without those that are None or empty. False and 0 stay: they say something."""
    return {key: value for key, value in fields.items() if value is not None and value not in ("", [], {})}


class Env:
    """Environment variables of one container, by name, in the order in which they were first set.

    That is the operator's order (revisions.md), so it is not ours to tidy: first its template's variables, then what
    host paths add, then what it appends. `appended` marks where the template ends; a container that is nothing but
    template needs no mark.

    Two layers: what the component sets, and what the policy's `env` sets on top, which wins whatever is set later
    (operator.md 5.2). A component whose rule is the other way round (GFD, toolkit) puts the policy's env into the
    first layer with `update`."""

    def __init__(self, values: Mapping[str, str | int | Mapping[str, str]] | None = None) -> None:
        """VALUES by name; {"field": path} is one of the downward API."""
        self._entries: dict[str, Body] = {}
        self._policy: dict[str, str] = {}
        self._template: int | None = None
        for name, value in (values or {}).items():
            if isinstance(value, Mapping):
                self.field(name, value["field"])
            else:
                self.set(name, value)

    def set(self, name: str, value: str | bool | int) -> Self:
        """Set NAME; booleans and numbers become the text that programs expect."""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        self._entries[name] = {"name": name, "value": text}
        return self

    def appended(self) -> Self:
        """End the template: what is new from here on comes behind what host paths add."""
        self._template = len(self._entries)
        return self

    def of_host(self, name: str, value: str) -> Self:
        """Set NAME, which follows from host paths: in its place, or behind the template's variables."""
        if name in self._entries or self._template is None:
            return self.set(name, value)
        entries = list(self._entries.items())
        entries.insert(self._template, (name, {"name": name, "value": value}))
        self._entries, self._template = dict(entries), self._template + 1
        return self

    def field(self, name: str, path: str) -> Self:
        """Take NAME from the downward API: spec.nodeName, metadata.namespace, ..."""
        self._entries[name] = {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
        return self

    def update(self, pairs: Pairs) -> Self:
        """Set several; later calls of `set` win over them."""
        for name, value in pairs:
            self.set(name, value)
        return self

    def policy(self, pairs: Pairs) -> Self:
        """Take the policy's env, which wins over everything that the component sets, before or after."""
        self._policy.update(pairs)
        return self

    def get(self, name: str) -> str | None:
        """The text that NAME will have, or None when it is not set or comes from the downward API."""
        value = self._policy.get(name, self._entries.get(name, {}).get("value"))
        return None if value is None else str(value)

    def body(self) -> list[Body]:
        merged = {**self._entries, **{name: {"name": name, "value": value} for name, value in self._policy.items()}}
        return list(merged.values())


@dataclass(frozen=True)
class Volume:
    """A volume and where it comes from. Two mounts of one name must mean the same source: `Pod` insists."""

    name: str
    source: Body = field(hash=False)

    @classmethod
    def host(cls, name: str, path: str, kind: str = "") -> Self:
        """A folder or file of the node.

        KIND is the hostPath type (Directory, DirectoryOrCreate, File, ...) or nothing."""
        return cls(name, {"hostPath": sparse(path=path, type=kind)})

    @classmethod
    def config_map(
        cls, name: str, config_map: str, *, items: Mapping[str, str] | None = None, mode: int | None = None
    ) -> Self:
        """A ConfigMap, or ITEMS of it (key -> path below the mount). MODE is an octal file mode such as 0o755."""
        chosen = [{"key": key, "path": path} for key, path in (items or {}).items()]
        return cls(name, {"configMap": sparse(name=config_map, items=chosen, defaultMode=mode)})

    @classmethod
    def secret(cls, name: str, secret: str, *, items: Mapping[str, str]) -> Self:
        chosen = [{"key": key, "path": path} for key, path in items.items()]
        return cls(name, {"secret": sparse(secretName=secret, items=chosen)})

    @classmethod
    def empty_dir(cls, name: str) -> Self:
        return cls(name, {"emptyDir": {}})

    @property
    def path(self) -> str:
        """Where it is on the node; raises KeyError for a volume that is not of the node."""
        return str(self.source["hostPath"]["path"])

    def body(self) -> Body:
        return {"name": self.name, **self.source}


@dataclass
class Container:
    """One container of a pod. `pull` is its imagePullPolicy, "" where the policy leaves it to the API server."""

    name: str
    image: str
    pull: str = ""
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Env = field(default_factory=Env)
    env_from: Sequence[Body] = ()
    security: SecurityContext | None = None
    resources: Mapping[str, Any] | None = None
    ports: Sequence[Body] = ()
    startup: Body | None = None
    liveness: Body | None = None
    readiness: Body | None = None
    pre_stop: Sequence[str] = ()
    mounts: list[tuple[Volume, Body]] = field(default_factory=list)

    def mount(
        self,
        volume: Volume,
        path: str,
        *,
        read_only: bool = False,
        propagation: Propagation | None = None,
        sub_path: str = "",
    ) -> Self:
        """Mount VOLUME at PATH; returns the container, so that mounts read as a list."""
        how = sparse(mountPath=path, readOnly=read_only or None, mountPropagation=propagation, subPath=sub_path)
        self.mounts.append((volume, {"name": volume.name, **how}))
        return self

    def body(self) -> Body:
        lifecycle = {"preStop": {"exec": {"command": list(self.pre_stop)}}} if self.pre_stop else None
        return sparse(
            name=self.name,
            image=self.image,
            imagePullPolicy=self.pull,
            command=list(self.command),
            args=list(self.args),
            env=self.env.body(),
            envFrom=list(self.env_from),
            ports=list(self.ports),
            resources=dict(self.resources or {}),
            securityContext=dict(self.security or {}),
            startupProbe=self.startup,
            livenessProbe=self.liveness,
            readinessProbe=self.readiness,
            lifecycle=lifecycle,
            volumeMounts=[mount for _, mount in self.mounts],
        )


@dataclass
class Pod:
    """The pod template of a workload, before the rules that hold for every DaemonSet are applied."""

    service_account: str
    node_selector: Mapping[str, str]
    containers: list[Container]
    init: list[Container] = field(default_factory=list)
    declared: Sequence[Volume] = ()
    """The volumes of the operator's template, in its order, also those that nothing mounts."""
    host_pid: bool = False
    host_ipc: bool = False
    host_network: bool = False
    share_process_namespace: bool = False
    affinity: Body | None = None
    pull_secrets: Sequence[str] = ()
    claims: Mapping[str, str] = field(default_factory=dict)
    """ResourceClaims by the name that containers use, each with the ResourceClaimTemplate that it is made from."""
    grace_period: int | None = None
    automount_token: bool | None = None
    config_digest: str = ""
    """Names the content of the ConfigMaps that the pod reads; as an annotation, so that a change rolls the pod."""

    def every_container(self) -> Iterator[Container]:
        yield from self.init
        yield from self.containers

    def volumes(self) -> list[Volume]:
        """The declared volumes, then what containers mount beside, as the operator appends it.

        Refuses two sources under one name (a defect of a component)."""
        by_name: dict[str, Volume] = {}
        mounted = (volume for container in [*self.containers, *self.init] for volume, _ in container.mounts)
        for volume in [*self.declared, *mounted]:
            if by_name.setdefault(volume.name, volume).source != volume.source:
                raise ValueError(
                    f"volume {volume.name} has two sources: {by_name[volume.name].source} and {volume.source}"
                )
        return list(by_name.values())

    def body(self) -> Body:
        """The PodSpec, less what comes from the policy's `daemonsets` section (daemonset.py)."""
        return sparse(
            serviceAccountName=self.service_account,
            nodeSelector=dict(self.node_selector),
            affinity=self.affinity,
            hostPID=self.host_pid or None,
            hostIPC=self.host_ipc or None,
            hostNetwork=self.host_network or None,
            dnsPolicy="ClusterFirstWithHostNet" if self.host_network else None,
            shareProcessNamespace=(self.share_process_namespace and not self.host_pid) or None,
            terminationGracePeriodSeconds=self.grace_period,
            automountServiceAccountToken=self.automount_token,
            imagePullSecrets=references(self.pull_secrets),
            resourceClaims=[{"name": name, "resourceClaimTemplateName": made} for name, made in self.claims.items()],
            initContainers=[container.body() for container in self.init],
            containers=[container.body() for container in self.containers],
            volumes=[volume.body() for volume in self.volumes()],
        )


def references(names: Iterable[str]) -> list[Body]:
    """References to objects called NAMES, each once, in order of first appearance."""
    return [{"name": name} for name in dict.fromkeys(names)]


def exec_probe(command: Sequence[str], **timing: int) -> Body:
    """A probe that runs COMMAND; TIMING by the API's own names (initialDelaySeconds=...)."""
    return {"exec": {"command": list(command)}, **timing}
