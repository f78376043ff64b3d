"""gpustack validate: kubeconform's opinion on dist/, with our own schemas, offline.

`render` has validated every object before it wrote a byte. This is the independent second look, by another program and
at the files themselves; nothing may be skipped, and every file that was written must be there.
"""

import argparse
import fnmatch
import os
import sys
import tempfile
from pathlib import Path

from ..catalog.kinds import kinds_of
from ..compiler import beside, folders, kubeconform
from ..compiler.foreign import Foreign
from ..model import Finding, GpustackError, InputError, Location
from . import common
from .refusals import said
from .text import document, plain, print_findings
from .trees import artifacts, links, strays


def run(options: argparse.Namespace) -> int:
    links.refuse(options.out)
    out = Path(options.out)
    clusters = chosen(out, options.clusters)
    binary = kubeconform.find(options.kubeconform)
    files: dict[Path, str] = {}
    findings: list[Finding] = []
    for cluster in clusters:
        findings += listed(out, cluster, files)
    told = {finding.location.file for finding in findings if finding.location}
    findings += [each.finding for each in strange(options, out) if each.path not in told]
    with common.store(options) as store, tempfile.TemporaryDirectory(prefix="gpustack-") as folder:
        alone = [cluster for cluster in clusters if artifacts.held(out, cluster)]
        written: dict[str, Path] = {}
        for cluster, stack in artifacts.contents(options, alone):
            root = written.setdefault(stack.key, Path(folder, cluster))
            for file in stack.files if root.name == cluster else ():
                path = root / file.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(file.text, "utf-8")
                files[path] = stack.minor
        findings += kubeconform.second_opinion(files, binary, store, options.jobs, kinds_of(Path.cwd()))
    code = 2 if findings else 0
    if options.format == "json":
        print(document(code, [plain(finding) for finding in findings], files=len(files)))
    else:
        print_findings(findings, sys.stderr)
        if not findings:
            which = f"{common.counted(len(files), 'file')} of {common.counted(len(clusters), 'cluster')}"
            print(f"{which} {'is' if len(files) == 1 else 'are'} valid")
    return code


def strange(options: argparse.Namespace, out: Path) -> list[Foreign]:
    """What lies in OUT and isn't rendered. Where a policy can't be rendered, nobody knows what that is: then what the
    indexes don't list, which `check` doesn't content itself with."""
    names = chosen(out, options.clusters) if options.clusters else None
    try:
        return strays.of_render(options, names)
    except GpustackError as error:
        told = said("GPU979", severity="warning", out=out, reason=error.findings[0].what)
        print_findings([told], sys.stderr)
        return strays.by_index(out, names)


def chosen(out: Path, words: list[str]) -> list[str]:
    """The clusters in OUT that WORDS mean; a word that means none is refused, and so is an empty folder."""
    known = beside.clusters_in(out)
    if not known:
        raise InputError(said("GPU023", out=out, index=out / beside.INDEX))
    for word in words:
        if not any(fnmatch.fnmatchcase(name, word) for name in known):
            raise InputError(common.unknown(word, known, str(out)))
    return [name for name in known if not words or any(fnmatch.fnmatchcase(name, word) for word in words)]


def listed(out: Path, cluster: str, files: dict[Path, str]) -> list[Finding]:
    """Add the files of CLUSTER to FILES; findings for those that the index lists and that are gone or changed."""
    path = out / beside.INDEX / f"{cluster}.json"
    listing = beside.index_data(out, cluster)
    try:
        minor, names = str(listing["kubernetes"]), dict(listing["files"])
        engine = dict(listing.get("engine", {}))
    except (ValueError, KeyError, TypeError):
        return [said("GPU024", "", Location(str(path)))]
    findings = []
    there = {out / cluster / name for name in folders.regular_files(out / cluster)}
    there.update(out / name for name in beside.files_in(out, cluster))
    for file in (*(out / cluster / name for name in names), *(out / name for name in engine)):
        if file in there:
            files[file] = minor
        else:
            case = "no file" if os.path.lexists(file) else "missing"
            findings.append(said("GPU025", case, Location(str(file)), index=path))
    return findings
