"""``dcgmi diag``: JSON of DCGM 2 to 4 and the table. The body is judged; the exit status alone says nothing of a GPU."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from hostler.health.finding import noted, unknown
from hostler.health.roll_up import accelerator_health, cut, source_health
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.json_text import load
from hostler.health.sources.log_dcgm_table import read_table
from hostler.health.sources.log_dcgm_words import NOT_RUN, VERDICTS, finding
from hostler.health.sources.source import Source
from hostler.model.enums import Verdict
from hostler.model.health import Finding, SourceHealth

KIND: Final = "dcgmi-diag"
_TOP: Final = re.compile(r'"DCGM (?:GPU )?Diagnostic"|"test_categories"')
_TABLE: Final = re.compile(
    r"^\|\s{0,4}Diagnostic\s{1,80}\|\s{0,4}Result|\|-{3,}\s{1,4}(?:Deployment|Integration|Hardware|Stress)\s", re.MULTILINE
)
_GPU: Final = re.compile(r"\bGPU[: ]{0,2}(\d{1,3})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One result of one test. gpus: those it speaks of; empty: of the node. error: number; None when not told."""

    test: str
    status: str
    gpus: tuple[int, ...] = ()
    text: str = ""
    error: int | None = None


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.95 for the JSON, 0.9 for the table."""
    if _TOP.search(text):
        return 0.95
    return 0.9 if _TABLE.search(text) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges every result; a body without any result that judges is unknown, whatever the exit status."""
    document = load(text)
    problems: list[str] = []
    results = list(_of_json(document, problems)) if document is not None else list(_of_table(text))
    if not results and not problems:
        return source_health(KIND, findings=[_no_body(text, command, exit_code)])
    note = () if not exit_code else (f"exit status {exit_code}: judged by what the diagnostic says, not by it",)
    findings = [unknown("dcgm.broken", problem) for problem in problems]
    return _judge(results, findings, note)


def _judge(results: list[Result], findings: list[Finding], notes: tuple[str, ...]) -> SourceHealth:
    of_gpus: dict[int, list[Finding]] = {}
    judged = 0
    for result in results:
        if result.status.strip().lower() in NOT_RUN:
            continue
        judged += result.status.strip().lower() in VERDICTS
        code = "dcgm." + re.sub(r"[^a-z0-9]+", "_", result.test.lower()).strip("_")
        found = finding(code, result.status, ": ".join(filter(None, (result.test, result.text))), result.error)
        if found.verdict is Verdict.HEALTHY and result.error:
            # Memory tests pass though they could not run: the error speaks (NVIDIA/DCGM#284).
            found = finding(code, "Fail", f"{result.test}: passed with an error: {result.text}", result.error)
        elif found.verdict is Verdict.HEALTHY and result.text:
            found = finding(code, "Warn", f"{result.test}: passed with a warning: {result.text}")
        elif found.verdict is Verdict.HEALTHY:
            found = noted(code, f"{result.test}: {result.status}", cut(f"{result.test}: {result.status}"), "NVIDIA/DCGM")
        for gpu in result.gpus:
            of_gpus.setdefault(gpu, []).append(found)
        if not result.gpus:
            findings.append(found)
    if not judged and not findings:
        findings.append(unknown("dcgm.not_run", "every test was skipped: the diagnostic says nothing"))
    accelerators = [accelerator_health(index=gpu, findings=_telling(found)) for gpu, found in sorted(of_gpus.items())]
    return source_health(KIND, accelerators, findings=_telling(findings), unknown=notes, silent=Verdict.HEALTHY)


def _telling(findings: list[Finding]) -> list[Finding]:
    return list(dict.fromkeys(found for found in findings if found.verdict is not Verdict.HEALTHY))


def _no_body(text: str, command: str | None, exit_code: int | None) -> Finding:
    found = no_answer(text, command, exit_code)
    if exit_code is not None and exit_code > 128 and exit_code not in {137, 143}:  # noqa: PLR2004 - DCGM ends with its negative status
        return unknown(
            "dcgm.broken", f"the diagnostic itself broke (DCGM status {exit_code - 256}): run it again", found.evidence
        )
    return found


def _of_json(document: Any, problems: list[str]) -> Iterator[Result]:
    root = document
    if isinstance(document, dict):
        root = next((document[key] for key in ("DCGM Diagnostic", "DCGM GPU Diagnostic") if key in document), document)
    if not isinstance(root, dict):
        problems.append("the JSON is no diagnostic")
        return
    for key in ("runtime_error", "error", "Error"):
        if root.get(key):
            problems.append(f"the diagnostic broke: {cut(str(root[key]))}")
    categories = root.get("test_categories", root.get("tests"))
    if not isinstance(categories, list):
        problems.append("the diagnostic has no test_categories")
        return
    for category in categories:
        tests = category.get("tests") if isinstance(category, dict) else None
        if isinstance(tests, list):
            for test in tests:
                yield from _of_test(test, problems)
        elif isinstance(category, dict) and "name" in category:
            yield from _of_test(category, problems)
        else:
            problems.append("a category without tests")


def _of_test(test: Any, problems: list[str]) -> Iterator[Result]:
    if not isinstance(test, dict) or not isinstance(test.get("name"), str):
        problems.append("a test without a name")
        return
    name, results = str(test["name"]), test.get("results")
    told = 0
    for result in results if isinstance(results, list) else ():
        if not isinstance(result, dict) or not isinstance(result.get("status"), str):
            problems.append(f"{name}: a result without a status")
            continue
        told += 1
        yield from _of_result(name, result)
    summary = test.get("test_summary")
    status = summary.get("status") if isinstance(summary, dict) else test.get("status")
    if isinstance(status, str) and (not told or VERDICTS.get(status.lower(), Verdict.HEALTHY) is not Verdict.HEALTHY):
        yield Result(test=name, status=status, text=_warnings(summary if isinstance(summary, dict) else test)[0])
    elif not told and not isinstance(status, str):
        problems.append(f"{name}: no result")


def _of_result(name: str, result: dict[str, Any]) -> Iterator[Result]:
    text, error = _warnings(result)
    gpus = _gpus(result)
    if result.get("entity_group") not in {None, "GPU"}:
        text, gpus = f"{result['entity_group']} {result.get('entity_id', '')}: {text}".rstrip(": "), ()
    yield Result(test=name, status=result["status"], gpus=gpus, text=text, error=error)


def _warnings(result: dict[str, Any]) -> tuple[str, int | None]:
    texts, errors = [], []
    warnings = result.get("warnings", result.get("warning", ()))
    for warning in warnings if isinstance(warnings, list) else [warnings]:
        if isinstance(warning, dict):
            texts.append(str(warning.get("warning", warning.get("error", ""))))
            errors.append(warning.get("error_id", warning.get("code")))
        elif warning:
            texts.append(str(warning))
    numbers = [error for error in errors if isinstance(error, int) and not isinstance(error, bool) and error]
    return cut("; ".join(texts)), next(iter(numbers), None)


def _gpus(result: dict[str, Any]) -> tuple[int, ...]:
    for key in ("entity_id", "gpu_id", "gpu_ids"):
        if key in result:
            return tuple(int(number) for number in re.findall(r"\d{1,4}", str(result[key]))[:64])
    return ()


def _of_table(text: str) -> Iterator[Result]:
    for row in read_table(text):
        gpus = row.gpus or tuple(int(found) for found in _GPU.findall(row.text)[:1])
        yield Result(test=row.name, status=row.status, gpus=gpus if row.gpus or row.text else (), text=row.text)


DIAG: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"\bdcgmi\b.*\bdiag\b|\bnvvs\b|dcgm.?diag")
