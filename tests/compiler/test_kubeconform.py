"""The second opinion: kubeconform itself, and what becomes of its answers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpustack.catalog import kubernetes
from gpustack.compiler import kubeconform
from gpustack.compiler.cache import Store
from gpustack.compiler.kubeconform import find, second_opinion
from gpustack.compiler.validate import validate
from gpustack.model import Finding, MissingToolError
from tests.compiler.schema_objects import BAD, GOOD, UNKNOWN, daemonset, obj

ROOT = Path(__file__).parents[2]
CONFIG_MAP = obj("v1", "ConfigMap", data={"a": "b"})


@pytest.fixture(scope="module")
def binary() -> Path:
    """The real program; without it the test fails and says how to get it."""
    return find(ROOT / ".tools/bin/kubeconform")


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write an object to a file below the test's folder, as JSON, which is YAML."""

    def write(name: str, *bodies: Any, header: str = "# rendered by gpustack\n") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(header + "\n---\n".join(json.dumps(body) for body in bodies) + "\n", "utf-8")
        return path

    return write


@pytest.fixture
def fake(tmp_path: Path) -> Callable[..., Path]:
    """A program that answers like kubeconform, but what the test wants."""

    def fake(answer: object, code: int = 0) -> Path:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        (tmp_path / "answer").write_text(text)
        path = tmp_path / "fake-kubeconform"
        path.write_text(f"#!/bin/sh\ncat '{tmp_path}/answer'\nexit {code}\n")
        path.chmod(0o755)
        return path

    return fake


def answer(*results: tuple[Path, str], **summary: int) -> dict[str, Any]:
    """Kubeconform's answer with these results (file, status), counted right unless SUMMARY says otherwise."""
    names = {"statusValid": "valid", "statusInvalid": "invalid", "statusError": "errors", "statusSkipped": "skipped"}
    counts = {"valid": 0, "invalid": 0, "errors": 0, "skipped": 0}
    for _, status in results:
        counts[names[status]] += 1
    resources = [
        {"filename": str(path), "kind": "ConfigMap", "name": "x", "status": status, "msg": ""}
        for path, status in results
    ]
    return {"resources": resources, "summary": counts | summary}


class Memory(dict[tuple[str, str], dict[str, Any]], Store):
    """A store whose values a test can see."""

    def __init__(self) -> None:
        super().__init__()

    def get(self, kind: str, key: str) -> dict[str, Any] | None:  # type: ignore[override]
        return super().get((kind, key))

    def put(self, kind: str, key: str, value: dict[str, Any]) -> None:
        self[kind, key] = value


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines that were run."""
    seen: list[list[str]] = []
    run = subprocess.run

    def spy(command: Sequence[str], **options: Any) -> Any:
        seen.append(list(command))
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", spy)
    return seen


def rules(findings: Sequence[Finding]) -> list[str]:
    """The rules of FINDINGS, all of which must be errors that say what to do."""
    assert all(finding.severity == "error" and finding.remedy for finding in findings)
    return [finding.rule for finding in findings]


@pytest.mark.parametrize("minor", ["1.29", "1.33", "1.37"])
def test_both_validators_agree(binary: Path, write: Write, minor: str) -> None:
    """Kubeconform and the verdict in the process say the same of good, bad and unknown objects."""
    bodies = GOOD | {name: body for name, (body, _) in BAD.items()} | UNKNOWN
    files = {write(f"{name}.yaml", body): minor for name, body in bodies.items()}
    found = {
        Path(finding.location.file).stem: finding.rule for finding in second_opinion(files, binary) if finding.location
    }
    second = {"GPU901": "GPU903", "GPU902": "GPU904"}
    assert found == {name: second[f.rule] for name, body in bodies.items() for f in validate(body, minor)}
    assert found.keys() == BAD.keys() | UNKNOWN.keys()


def test_versions_are_told_apart(binary: Path, write: Write) -> None:
    """Each file is judged by its own cluster's version, also where the objects are equal."""
    body = daemonset(pod={"hostnameOverride": "gpu"})  # since Kubernetes 1.34
    old, new = write("old.yaml", body), write("new.yaml", body)
    (finding,) = second_opinion({old: "1.33", new: "1.34"}, binary)
    assert finding.rule == "GPU903"
    assert finding.location is not None
    assert finding.location.file == str(old)
    assert "hostnameOverride" in finding.why


def test_duplicate_keys_are_refused(binary: Path, write: Write) -> None:
    """What only a reader of text can see, kubeconform sees."""
    path = write("a.yaml", CONFIG_MAP)
    path.write_text(path.read_text().replace('"data"', '"kind": "ConfigMap", "data"'))
    assert rules(second_opinion({path: "1.33"}, binary)) == ["GPU904"]


@pytest.mark.parametrize(
    ("name", "bodies", "said"),
    [
        ("two.yaml", [CONFIG_MAP, CONFIG_MAP], "2 objects"),
        ("none.yaml", [], "no objects"),
        ("other.txt", [CONFIG_MAP], "no objects"),
        ("list.yaml", [obj("v1", "List", items=[CONFIG_MAP, CONFIG_MAP])], "2 objects"),
    ],
)
def test_files_that_hold_not_one_object(binary: Path, write: Write, name: str, bodies: list[Any], said: str) -> None:
    """A file in which kubeconform looks at nothing, or at more than was rendered, is an error."""
    findings = second_opinion({write(name, *bodies): "1.33"}, binary)
    assert rules(findings) == ["GPU905"]
    assert said in findings[0].what


def test_unreadable_files(binary: Path, write: Write, tmp_path: Path) -> None:
    """A file that is gone, or is none, is an error of its own; the others are judged."""
    (tmp_path / "folder.yaml").mkdir()
    bad = write("bad.yaml", BAD["misspelt field"][0])
    findings = second_opinion({tmp_path / "gone.yaml": "1.33", tmp_path / "folder.yaml": "1.33", bad: "1.33"}, binary)
    assert sorted(rules(findings)) == ["GPU903", "GPU904", "GPU904"]


@pytest.mark.parametrize(
    "name", ["-strict.yaml", "--.yaml", "-skip=ConfigMap.yaml", "a b'\"$x;.yaml", "é\n.yaml", "{{.x}}.yaml"]
)
def test_no_file_name_is_an_option(binary: Path, write: Write, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """File names that look like options, or like anything else, are file names."""
    path = write(name, CONFIG_MAP)
    monkeypatch.chdir(path.parent)
    assert second_opinion({Path(name): "1.33"}, binary) == []
    bad = write(name, BAD["misspelt field"][0])
    assert rules(second_opinion({bad.relative_to(path.parent): "1.33"}, binary)) == ["GPU903"]


def test_schemas_in_a_folder_with_braces(
    binary: Path, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout's path may hold what kubeconform's template language is made of."""
    (tmp_path / "x {{.Group}} y").symlink_to(ROOT / "schemas")
    monkeypatch.setattr(kubernetes, "schema_root", lambda: tmp_path / "x {{.Group}} y")
    assert second_opinion({write("a.yaml", CONFIG_MAP): "1.33"}, binary) == []


def test_only_our_schemas_are_used(binary: Path, write: Write, calls: list[list[str]]) -> None:
    """Strict, no skipping, and no place for schemas but our folders: nothing is fetched."""
    second_opinion({write("a.yaml", CONFIG_MAP): "1.33"}, binary)
    (command,) = calls
    places = [command[i + 1] for i, word in enumerate(command) if word == "-schema-location"]
    assert [str(Path(place).parent) for place in places] == [
        str(ROOT / "schemas/kubernetes/1.33"),
        str(ROOT / "schemas/crds"),
    ]
    assert "-strict" in command
    assert not {"-skip", "-ignore-missing-schemas", "-ignore-filename-pattern", "-cache"} & set(command)


def test_equal_objects_are_looked_at_once(binary: Path, write: Write, calls: list[list[str]]) -> None:
    """Files that differ in their header alone cost one look, and a finding speaks for all of them."""
    body = BAD["misspelt field"][0]
    files = {write(f"c{n}/a.yaml", body, header=f"# cluster {n}\n"): "1.33" for n in range(5)}
    other = write("other.yaml", CONFIG_MAP)
    (finding,) = second_opinion(files | {other: "1.33"}, binary)
    assert "and 4 more files with the same object" in finding.what
    assert len([word for word in calls[0] if word.endswith("a.yaml")]) == 1


@pytest.mark.parametrize("header", ["", "# a\n"])
def test_only_a_first_comment_is_header(binary: Path, write: Write, header: str) -> None:
    """Files that differ in anything but a first comment line, be it their suffix, are looked at each."""
    good = write("a.yaml", CONFIG_MAP, header=header)
    bad = write("b.yaml", obj("v1", "ConfigMap", data={"a": 1}), header=header)
    other = write("c.txt", CONFIG_MAP, header=header)
    findings = second_opinion({good: "1.33", bad: "1.33", other: "1.33"}, binary)
    assert rules(findings) == ["GPU903", "GPU905"]


def test_long_lists_are_cut(
    binary: Path, write: Write, calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """More files than fit on a command line are given in several calls, each of one version, and all are judged."""
    monkeypatch.setattr(kubeconform, "CHUNK_FILES", 3)
    bodies = [obj("v1", "ConfigMap", data={"a": str(n)}) for n in range(8)] + [BAD["misspelt field"][0]]
    files = {write(f"{n}.yaml", body): "1.33" if n % 2 else "1.34" for n, body in enumerate(bodies)}
    assert rules(second_opinion(files, binary)) == ["GPU903"]
    given = [command[command.index("--") + 1 :] for command in calls]
    assert sorted(map(len, given)) == [1, 2, 3, 3]
    assert sorted(name for names in given for name in names) == sorted(map(str, files))
    calls.clear()
    monkeypatch.setattr(kubeconform, "CHUNK_BYTES", 10)
    second_opinion(files, binary)
    assert len(calls) == len(files)


def test_good_verdicts_are_remembered(binary: Path, write: Write, calls: list[list[str]]) -> None:
    """What was found valid is not asked again, whatever its header; what was refused is."""
    memory = Memory()
    good, bad = write("good.yaml", CONFIG_MAP), write("bad.yaml", BAD["misspelt field"][0])
    for _ in range(2):
        assert rules(second_opinion({good: "1.33", bad: "1.33"}, binary, memory)) == ["GPU903"]
    assert [command[command.index("--") + 1 :] for command in calls] == [[str(bad), str(good)], [str(bad)]]
    copy = write("copy.yaml", CONFIG_MAP, header="# another cluster\n")
    assert second_opinion({copy: "1.33"}, binary, memory) == []
    assert len(calls) == 2
    assert second_opinion({copy: "1.34"}, binary, memory) == []
    assert len(calls) == 3


def test_a_verdict_belongs_to_schemas_and_program(
    binary: Path, write: Write, fake: Callable[..., Path], calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other schemas or another program: asked again."""
    memory = Memory()
    path = write("a.yaml", CONFIG_MAP)
    second_opinion({path: "1.33"}, binary, memory)
    second_opinion({path: "1.33"}, fake(answer((path, "statusValid"))), memory)
    assert len(calls) == 2
    monkeypatch.setattr(kubernetes, "schema_digest", lambda minor: "other")
    second_opinion({path: "1.33"}, binary, memory)
    assert len(calls) == 3


def test_a_file_replaced_meanwhile_is_not_remembered(
    write: Write, fake: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verdict is remembered only for the content that was there before and after."""
    memory = Memory()
    path = write("a.yaml", CONFIG_MAP)
    program = fake(answer((path, "statusValid")))
    program.write_text(program.read_text().replace("exit 0", f"echo '# more' >> '{path}'"))
    assert second_opinion({path: "1.33"}, program, memory) == []
    assert memory == {}


@pytest.mark.parametrize(
    ("statuses", "summary", "code", "expected"),
    [
        (["statusValid"], {}, 0, []),
        (["statusSkipped"], {}, 0, ["GPU904"]),
        (["statusError"], {}, 1, ["GPU904"]),
        (["statusInvalid"], {}, 1, ["GPU903"]),
        (["statusNew"], {}, 0, ["GPU904", "GPU905"]),
        ([], {}, 0, ["GPU905"]),
        ([], {"valid": 1}, 0, ["GPU905", "GPU905"]),
        (["statusValid"], {"skipped": 1}, 0, ["GPU905"]),
        (["statusValid"], {"valid": 0, "skipped": 1}, 0, ["GPU905"]),
        (["statusValid"], {}, 1, ["GPU905"]),
        (["statusValid", "statusValid"], {}, 0, ["GPU905"]),
    ],
)
def test_answers_are_counted(
    *,
    write: Write,
    fake: Callable[..., Path],
    statuses: list[str],
    summary: dict[str, int],
    code: int,
    expected: list[str],
) -> None:
    """A file is good, and remembered, for one valid result, counted as such, with exit code 0; else it is an error."""
    path = write("a.yaml", CONFIG_MAP)
    known = [status for status in statuses if status != "statusNew"]
    said = answer(*((path, status) for status in known), **summary)
    for _ in range(len(statuses) - len(known)):
        said["resources"].append({"filename": str(path), "kind": "", "name": "", "status": "statusNew", "msg": ""})
    memory = Memory()
    assert sorted(rules(second_opinion({path: "1.33"}, fake(said, code), memory))) == expected
    assert len(memory) == (0 if expected else 1)


@pytest.mark.parametrize(
    "said", ["", "panic: oh no", "{}", '{"resources": null, "summary": {}}', "[]", '{"resources": [1]}']
)
def test_an_answer_that_is_none(write: Write, fake: Callable[..., Path], said: str) -> None:
    """A program that fails is one error with its exit code and words."""
    files = {write(f"{n}.yaml", obj("v1", "ConfigMap", data={"a": str(n)})): "1.33" for n in range(3)}
    findings = second_opinion(files, fake(said, 3))
    assert rules(findings) == ["GPU904"]
    assert "exit code 3" in findings[0].why
    assert said in findings[0].why


def test_a_program_that_hangs(write: Write, fake: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that doesn't end is ended, and that is an error."""
    monkeypatch.setattr(kubeconform, "TIMEOUT_S", 0.2)
    program = fake("")
    program.write_text("#!/bin/sh\nexec sleep 5\n")
    findings = second_opinion({write("a.yaml", CONFIG_MAP): "1.33"}, program)
    assert rules(findings) == ["GPU904"]
    assert "still running" in findings[0].why


def test_complaints_about_files_that_were_not_given(write: Write, fake: Callable[..., Path], tmp_path: Path) -> None:
    """What kubeconform says about something else is not lost."""
    path = write("a.yaml", CONFIG_MAP)
    said = answer((path, "statusValid"), (tmp_path / "else.yaml", "statusError"))
    said["resources"][1]["msg"] = "no such device"
    (finding,) = second_opinion({path: "1.33"}, fake(said, 1))
    assert (finding.rule, finding.why) == ("GPU904", "no such device")


def test_nothing_to_do(binary: Path, calls: list[list[str]]) -> None:
    """No files, no findings, no process."""
    assert second_opinion({}, binary) == []
    assert calls == []


def test_find_takes_explicit_then_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program that was named, else the PATH's, from / on; never one of the current folder, which may be a clone."""
    places = [tmp_path / "named", tmp_path / "path" / "kubeconform", tmp_path / "project/.tools/bin/kubeconform"]
    for place in (*places, tmp_path / "project/kubeconform"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("#!/bin/sh\n")
        place.chmod(0o755)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("PATH", f":.tools/bin:.:{tmp_path / 'path'}:")
    assert find(places[0]) == places[0]
    assert find() == places[1]
    for hostile in ("", ":", ".", ".tools/bin", "./.tools/bin:", str(tmp_path)):
        monkeypatch.setenv("PATH", hostile)
        with pytest.raises(MissingToolError):
            find()


def test_find_refuses_what_can_not_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No program, or one that can't be run, is a missing tool (exit 5) with what to do."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "text").write_text("no program")
    for explicit in (None, tmp_path / "gone", tmp_path / "text"):
        with pytest.raises(MissingToolError) as missing:
            find(explicit)
        assert missing.value.exit_code == 5
        assert "--kubeconform" in missing.value.findings[0].remedy


@pytest.mark.parametrize("verdicts", [None, Memory()])
def test_a_program_that_can_not_be_started(write: Write, tmp_path: Path, verdicts: Memory | None) -> None:
    """A program for another machine, or one that is gone, is a missing tool, not a verdict."""
    path = write("a.yaml", CONFIG_MAP)
    (tmp_path / "elf").write_bytes(b"\x7fELF\x02\x01\x01")
    (tmp_path / "elf").chmod(0o755)
    for program in (tmp_path / "elf", tmp_path / "gone"):
        with pytest.raises(MissingToolError):
            second_opinion({path: "1.33"}, program, verdicts)
