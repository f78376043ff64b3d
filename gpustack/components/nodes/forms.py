"""What is set up on a pool's nodes, as text in the form that their system takes.

Solves: the same five settings are Ignition here, TOML there and a script elsewhere. All forms are made of one `Setup`,
whose parts stand in the same order in each. Nothing here runs anything; where a form takes a shell, it is one script
with a mode that only looks (`host.sh` beside this file).
"""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...cluster.node_host import Setup, forms, setup
from ...cluster.pool import Pool
from ...model import Body
from ...text.emit import emit, emit_value
from ..parts.kube import object_of
from ..parts.pod import sparse

SYSCTLS = "/etc/sysctl.d/50-gpustack.conf"
SCRIPT = "/usr/local/sbin/gpustack-host"


def text(pool: Pool, form: str) -> str:
    """What hosts of POOL get, as a text in FORM, one of `forms()`, with a head that says whose it is."""
    head = f"# Nodes of the pool {pool.name}: {forms()[form]['title']}, for `host` of gpustack's policy.\n"
    needless = forms()[form].get("needless", {})
    head += "".join(f"# {name}: {why}.\n" for name, why in needless.items() if getattr(pool.said.host, name))
    body = MAKERS[form](setup(pool, form), pool)
    if form == "ignition":  # JSON has no comments
        return body
    first, _, rest = body.partition("\n")
    return f"{first}\n{head}{rest}" if first.startswith("#") else head + body


def all_files(made: Setup) -> dict[str, str]:
    """The files of a host that takes any: those of sysctls too."""
    sysctls = "".join(f"{key} = {value}\n" for key, value in made.sysctls.items())
    return {**made.files, **({SYSCTLS: sysctls} if sysctls else {})}


def ignition(made: Setup, head: Body, *, inline: bool = False) -> Body:
    """MADE as Ignition, or with contents INLINE as Butane, which has the same parts, beside HEAD."""
    files = [
        {
            "path": path,
            "mode": 0o644,
            "overwrite": True,
            "contents": {"inline": content} if inline else {"source": f"data:,{quote(content)}"},
        }
        for path, content in all_files(made).items()
    ]
    units = [{"name": name, "enabled": True} for name in made.enabled]
    units += [{"name": name, "mask": True} for name in made.masked]
    return {**head, **sparse(storage=sparse(files=files), systemd=sparse(units=units))}


def machine_config(made: Setup, pool: Pool) -> Body:
    """The MachineConfig of nodes of POOL. Its Ignition may hold no kernel arguments."""
    labels = {"machineconfiguration.openshift.io/role": pool.said.host.machineConfigPool or pool.name}
    config = ignition(made, {"ignition": {"version": "3.2.0"}})
    spec = {"config": config, **sparse(kernelArguments=list(made.arguments))}
    name = f"99-gpustack-{pool.name}"
    return object_of("machineconfiguration.openshift.io/v1", "MachineConfig", name, spec, labels=labels)


def _ignition(made: Setup, _: Pool) -> str:
    head = {"ignition": {"version": "3.3.0"}, **sparse(kernelArguments=sparse(shouldExist=made.arguments))}
    return json.dumps(ignition(made, head), indent=2, sort_keys=True) + "\n"


def _butane(made: Setup, _: Pool) -> str:
    head = {"variant": "flatcar", "version": "1.0.0", **sparse(kernel_arguments=sparse(should_exist=made.arguments))}
    return emit_value(ignition(made, head, inline=True))


def _talos(made: Setup, _: Pool) -> str:
    """Modules have their parameters beside them, and arguments of the kernel come with the next install or upgrade."""
    ids = [each for each in made.arguments if each.startswith("vfio-pci.ids=")]
    parameters = [each.removeprefix("vfio-pci.") for each in ids]
    modules = [sparse(name=name.replace("-", "_"), parameters=parameters) for name in made.modules]
    drop_ins = [content for name, content in made.files.items() if name.endswith(".toml")]
    machine = sparse(
        install=sparse(extraKernelArgs=[each for each in made.arguments if each not in ids]),
        kernel=sparse(modules=modules),
        sysctls=dict(made.sysctls),
        files=[
            {"path": forms()["talos"]["file"], "op": "create", "permissions": 0o644, "content": each}
            for each in drop_ins
        ],
    )
    return emit_value({"machine": machine})


def _settings(made: Setup) -> Iterator[str]:
    """Lines of TOML; what JSON writes as a string is one there, too."""
    arguments = [each for each in made.arguments if not each.partition("=")[0].endswith("blacklist")]
    if arguments:
        yield "[settings.boot]\nreboot-to-reconcile = true\n\n[settings.boot.kernel-parameters]"
        for each in arguments:
            key, _, value = each.partition("=")
            yield f"{json.dumps(key)} = {json.dumps([value])}"
    if made.sysctls:
        yield "\n[settings.kernel.sysctl]"
        yield from (f"{json.dumps(key)} = {json.dumps(value)}" for key, value in made.sysctls.items())
    for name in made.modules:
        yield f"\n[settings.kernel.modules.{name}]\nallowed = true\nautoload = true"
    for name in made.blocked:
        yield f"\n[settings.kernel.modules.{name}]\nallowed = false"


def _shell(made: Setup, pool: Pool) -> str:
    """Each file is a word of the shell, so that nothing in it means anything there."""
    calls = [f"file {shlex.quote(path)} {shlex.quote(content)}" for path, content in all_files(made).items()]
    calls += [f"sysctl_is {shlex.quote(key)} {shlex.quote(value)}" for key, value in made.sysctls.items()]
    calls += [f"absent {name}" for name in made.blocked]
    calls += [f"enabled {name}" for name in made.enabled] + [f"masked {name}" for name in made.masked]
    if made.arguments:
        calls.append(f"arguments {shlex.join(made.arguments)}")
    if made.kernel:
        calls.append(f"held {shlex.quote(made.kernel)}")
    script = Path(__file__).with_name("host.sh").read_text("utf-8")
    return script.replace("GPUSTACK_CALLS", "\n".join(calls))


def _cloud_init(made: Setup, pool: Pool) -> str:
    """The script, which is run once; the machine restarts where that asks for it."""
    body: dict[str, Any] = {
        "write_files": [{"path": SCRIPT, "permissions": "0755", "content": _shell(made, pool)}],
        "runcmd": [[SCRIPT, "apply"]],
        "power_state": {"mode": "reboot", "condition": ["test", "-e", "/run/gpustack-host.reboot"]},
    }
    return f"#cloud-config\n{emit_value(body)}"


MAKERS: dict[str, Callable[[Setup, Pool], str]] = {
    "machine-config": lambda made, pool: emit(machine_config(made, pool)),
    "talos": _talos,
    "bottlerocket": lambda made, _: "\n".join(_settings(made)) + "\n",
    "butane": _butane,
    "ignition": _ignition,
    "cloud-init": _cloud_init,
    "shell": _shell,
}
