"""Where the cluster is, and what its errors mean to the person at the keyboard."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...model import InputError
from ...text import programs
from ..refusals import refusal

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import SingleConfig

    from ...reconciler.shell.cluster import ApiError, Cluster

T = TypeVar("T")

DEFAULT_NAMESPACE = "gpu-operator"
"""That of a policy which says none (cluster.namespace)."""
AT_ONCE, DEADLINE = 16, 120
"""How many clusters are looked at side by side, and for how many seconds each."""
PERSON = "gpustack"
"""Who writes, for the API server: a person with this program, and not the reconciler."""


def space(text: str) -> str:
    """TEXT, the name of a namespace."""
    from ...reconciler.shell.cluster import NAMESPACE

    if text and not NAMESPACE.fullmatch(text):  # argparse asks of the default too
        raise argparse.ArgumentTypeError(f"{text!r} is not a namespace: up to 63 lower-case letters, digits and dashes")
    return text


def given(text: str) -> str:
    """TEXT, the name of an object."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: name one, or leave it out")
    return text


def files_stand_in(options: argparse.Namespace) -> bool:
    """Whether files are looked at instead of a cluster. InputError where a cluster is named as well."""
    if options.sources and (options.kubeconfig or options.context or getattr(options, "prometheus", "")):
        raise refusal("GPU026", "files")
    return bool(options.sources)


def run(options: argparse.Namespace, work: Callable[[Cluster], Awaitable[T]]) -> T:
    """WORK on the cluster that OPTIONS name. What the API server refuses becomes a GpustackError."""

    async def connected() -> T:
        async with client(options) as cluster:
            return await work(cluster)

    return waited(connected())


def at_once(
    options: argparse.Namespace, works: Iterable[tuple[str, Callable[[Cluster], Awaitable[T]]]]
) -> list[T | InputError]:
    """What WORKS, each with the context of its cluster, come to, or why one can't; AT_ONCE of them at a time."""
    from ...reconciler.shell.cluster import ApiError

    async def one(gate: asyncio.Semaphore, context: str, work: Callable[[Cluster], Awaitable[T]]) -> T | InputError:
        try:
            own = argparse.Namespace(**{**vars(options), "context": context})
            async with gate, asyncio.timeout(DEADLINE), client(own) as cluster:
                return await work(cluster)
        except ApiError as error:
            return told(error)
        except InputError as error:
            return error
        except TimeoutError:
            return refusal("GPU931", "slow", seconds=DEADLINE)

    async def every() -> list[T | InputError]:
        gate = asyncio.Semaphore(AT_ONCE)
        return await asyncio.gather(*(one(gate, *each) for each in works))

    return asyncio.run(every())


def waited(work: Coroutine[Any, Any, T]) -> T:
    """What WORK comes to, with errors of the API server in words."""
    from ...reconciler.shell.cluster import ApiError

    try:
        return asyncio.run(work)
    except ApiError as error:
        raise told(error) from None


@asynccontextmanager
async def client(options: argparse.Namespace) -> AsyncIterator[Cluster]:
    """A client of the cluster, closed at the end."""
    from ...reconciler.shell.client import Client
    from ...reconciler.shell.cluster import Unreachable

    files = hasattr(options, "sources")
    config = configuration(options.kubeconfig or "", options.context or "", files=files)
    try:
        made = Client(config, PERSON)
    except Unreachable as error:
        raise no_configuration(str(error), files=files) from None
    try:
        yield made
    finally:
        await made.close()


def configuration(kubeconfig: str, context: str, *, files: bool) -> SingleConfig:
    """The cluster's address and login; in a pod without a file its ServiceAccount's. FILES: whether files would do."""
    from ...reconciler.shell.client import configuration, contexts
    from ...reconciler.shell.cluster import Unreachable

    default = Path("~/.kube/config").expanduser()
    file = kubeconfig or os.environ.get("KUBECONFIG", "") or (str(default) if default.is_file() else "")
    if context and not file:
        raise no_configuration(f"there is no file that could have a context {context!r}", files=files)
    try:
        return outside(configuration(file, context), file)
    except Unreachable as error:
        known = contexts(file) if context and file else []
        if known and context not in known:
            raise unknown("context", context, known, f"{file} has") from None
        why = str(error) if file else "no kubeconfig is named, and this is not a pod"
        raise no_configuration(why, files=files) from None


def outside(config: SingleConfig, files: str) -> SingleConfig:
    """CONFIG, whose plugin is found outside of the work tree. Raises InputError for one that a clone may have brought
    along, by a file among FILES or by where it is, and for a file of the clone that sends a token from elsewhere."""
    import msgspec

    if config.user is None:
        return config
    file = next((path for each in files.split(os.pathsep) if (path := Path(each).expanduser()).is_file()), Path(files))
    secret = Path(config.user.token_file or "")
    if secret.name and programs.of_work_tree(file) and not programs.of_work_tree(file.absolute().parent / secret):
        raise refusal("GPU932", "token", config=file, secret=secret, server=config.cluster.server)
    plugin = config.user.exec
    if plugin is None:
        return config
    named = Path(plugin.command)
    beside = file.absolute().parent / named  # as kubectl reads a path
    program = beside if len(named.parts) > 1 else Path(programs.find(plugin.command) or "")
    ours = next((str(path) for path in (file, program) if path.name and programs.of_work_tree(path)), "")
    if ours or not program.name:
        raise refusal("GPU932", "our plugin" if ours else "no plugin", path=ours or file, plugin=plugin.command)
    made = msgspec.structs.replace(plugin, command=str(program))
    return config._replace(user=msgspec.structs.replace(config.user, exec=made))


def no_configuration(what: str, *, files: bool) -> InputError:
    """The error for a cluster that can't be found."""
    return refusal("GPU930", "or files" if files else "cluster", trouble=what)


def told(error: ApiError) -> InputError:
    """An error of the API server as a finding."""
    from ...reconciler.shell.cluster import Forbidden, NoLogin, TooMany, Unreachable

    if isinstance(error, NoLogin):
        return refusal("GPU932", "no login", said=error)
    if isinstance(error, Unreachable):
        return refusal("GPU931", "silent", said=error)
    if isinstance(error, Forbidden):
        return refusal("GPU932", "stranger" if error.status == 401 else "forbidden", said=error)
    if isinstance(error, TooMany):
        return refusal("GPU931", "busy", said=error)
    return refusal("GPU933", "refused", said=error)


def unknown(kind: str, name: str, known: Iterable[str], has: str = "there are") -> InputError:
    """The error for a NAME that no object of KIND has, with the nearest of those that are KNOWN."""
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, n=3)
    listed = ", ".join(names[:12]) + (" and more" if len(names) > 12 else "")
    words = {"kind": kind, "name": repr(name), "has": has, "listed": listed, "near": " or ".join(near)}
    return refusal("GPU934", "near" if near else "unknown" if names else "none", **words)


async def namespace(cluster: Cluster, asked: str) -> str:
    """Where the GPU stack is: ASKED, else where the reconciler's Lease is, else where a policy puts it by default."""
    from ...reconciler.shell.cluster import LEASES, Forbidden, Selection
    from ...reconciler.shell.lease import NAME

    if asked:
        return asked
    try:
        leases = (await cluster.list(LEASES, Selection(fields=f"metadata.name={NAME}"))).items
    except Forbidden:
        return DEFAULT_NAMESPACE
    namespaces = sorted({lease.metadata.namespace for lease in leases})
    if len(namespaces) > 1:
        raise refusal("GPU935", "several", names=", ".join(namespaces))
    return namespaces[0] if namespaces else DEFAULT_NAMESPACE
