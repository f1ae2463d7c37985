import codecs
import io
import json
import subprocess
import sys

import pytest
from tests.health.sources.samples import planted, xml

from hostler.cli import health
from hostler.cli.main import main


@pytest.fixture
def explained(capsys):
    """What the command prints for its arguments: documents, exit status, errors."""

    def run(*arguments):
        status = main(["explain-health", *map(str, arguments)])
        shown = capsys.readouterr()
        return shown.out, status, shown.err

    return run


def test_explain_health_when_given_one_file_then_one_document_whatever_the_verdict(explained, tmp_path):
    path = tmp_path / "smi.xml"
    path.write_text(planted(xml("a10g"), "<remapped_row_failure>No", "<remapped_row_failure>Yes"), encoding="utf-8")
    out, status, _ = explained(path)

    shown = json.loads(out)
    assert status == 0
    assert shown["source"] == "nvidia-smi-xml"
    assert shown["node"]["action"] == "drain_and_replace"


def test_explain_health_when_given_several_files_then_one_document_a_line_in_their_order(explained, tmp_path):
    for name, text in (("a", xml("a10g")), ("b", "No devices were found"), ("c", "")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    out, status, _ = explained(tmp_path / "a", tmp_path / "b", tmp_path / "c")

    assert status == 0
    assert [json.loads(line)["node"]["verdict"] for line in out.splitlines()] == ["healthy", "failed", "unknown"]


def test_explain_health_when_kind_command_and_status_are_told_then_they_are_used(explained, tmp_path):
    path = tmp_path / "out"
    path.write_text("41, 7\n", encoding="utf-8")
    asked = "nvidia-smi --query-gpu=temperature.gpu,ecc.errors.uncorrected.volatile.total --format=csv,noheader"

    assert json.loads(explained("--command", asked, path)[0])["node"]["action"] == "reset_gpu"
    path.write_text("", encoding="utf-8")
    assert json.loads(explained("--source", "nvidia-smi-error", "--exit-code", "18", path)[0])["node"]["verdict"] == "failed"


def test_explain_health_when_the_file_is_a_dash_then_standard_input_is_read(explained, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(xml("a10g").encode())))

    assert json.loads(explained("-")[0])["node"]["verdict"] == "healthy"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_explain_health_when_a_windows_shell_wrote_the_file_then_it_is_read(explained, tmp_path, encoding):
    path = tmp_path / "smi.xml"
    mark = codecs.BOM_UTF16_BE if encoding == "utf-16-be" else b""
    path.write_bytes(mark + xml("a10g").encode(encoding))

    assert json.loads(explained(path)[0])["node"]["verdict"] == "healthy"


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x00\x00" * 100, bytes(range(128, 256)) * 10])
def test_explain_health_when_a_file_is_empty_or_binary_then_unknown(explained, tmp_path, content):
    path = tmp_path / "odd"
    path.write_bytes(content)
    out, status, _ = explained(path)

    assert status == 0
    assert json.loads(out)["node"]["verdict"] == "unknown"


@pytest.mark.parametrize("line", [b"<nvidia_smi_log>\n", b"0, NVIDIA A100, 41\n", b"\x00\xff\x00\xff", b"GPU 0: x (UUID: y)\n"])
def test_explain_health_when_a_file_has_50_mb_then_unknown_soon(explained, tmp_path, line):
    path = tmp_path / "big"
    path.write_bytes(line * (50 * 1024 * 1024 // len(line)))
    out, status, _ = explained(path)

    assert status == 0
    assert json.loads(out)["node"]["verdict"] == "unknown"


def test_explain_health_when_a_file_cannot_be_opened_then_the_others_are_explained_and_the_status_is_2(explained, tmp_path):
    path = tmp_path / "smi.xml"
    path.write_text(xml("a10g"), encoding="utf-8")
    out, status, err = explained(tmp_path / "none", path)

    assert status == 2
    assert "none: No such file" in err
    assert json.loads(out)["node"]["verdict"] == "healthy"


def test_explain_health_when_the_kind_is_not_known_then_the_kinds_are_listed(explained, tmp_path):
    path = tmp_path / "smi.xml"
    path.write_text("x", encoding="utf-8")
    _, status, err = explained("--source", "nvidia", path)

    assert status == 2
    assert "nvidia-smi-xml" in err


def test_explain_health_when_run_then_neither_ledger_nor_cloud_is_imported():
    program = f"import sys, {health.__name__}; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()

    assert [name for name in loaded if name.startswith(("airflow", "boto", "sqlalchemy", "asyncssh", "hostler.stores"))] == []
