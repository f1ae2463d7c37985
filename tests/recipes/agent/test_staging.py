"""Code and data are on the node, whole, before the command starts; where they are not, the job fails with words."""

import pytest

from hostler.recipes.agent.staging import stage

SHOW = 'cat "$HOSTLER_CODE_DIR/main.txt" "$HOSTLER_CODE_DIR/lib/deep/part.txt" "$HOSTLER_DATA_DIR/set 1/ü.bin"'
CODE = {"main.txt": b"main ", "lib/deep/part.txt": b"part "}
DATA = {"set 1/ü.bin": b"data\n", "empty": b""}


def put_files(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def below(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def places(tmp_path):
    return tmp_path / "to" / "code", tmp_path / "to" / "data"


def test_job_when_folders_are_named_then_it_finds_code_and_data_in_place(agent, tmp_path):
    put_files(tmp_path / "my code", CODE)
    put_files(tmp_path / "sets", DATA)
    env = {"HOSTLER_CODE_URI": f"file://{tmp_path}/my%20code", "HOSTLER_DATA_URI": f"file://{tmp_path}/sets"}
    agent.start("j1", SHOW, env=env)
    assert agent.until_state("j1", "succeeded", "failed")["log_tail"] == "main part data\n"


def test_job_when_a_bucket_is_named_then_it_finds_code_and_data_in_place(agent, server, client):
    agent.environment.update(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")
    agent.configure(backup=agent.backup(uri="s3://bucket/backups", endpoint_url=server, region="us-east-1"))
    for prefix, files in (("team/code", CODE), ("team/data", DATA), ("team/code-of-others", {"main.txt": b"wrong"})):
        for name, content in files.items():
            client.put_object(Bucket="bucket", Key=f"{prefix}/{name}", Body=content)
    env = {"HOSTLER_CODE_URI": "s3://bucket/team/code", "HOSTLER_DATA_URI": "s3://bucket/team/data/"}
    agent.start("j1", SHOW, env=env)
    assert agent.until_state("j1", "succeeded", "failed")["log_tail"] == "main part data\n"


@pytest.mark.parametrize("variable", ["HOSTLER_CODE_URI", "HOSTLER_DATA_URI"])
def test_job_when_there_is_nothing_at_the_place_then_the_command_never_starts_and_the_job_says_why(agent, tmp_path, variable):
    agent.start("j1", 'touch "$HOSTLER_OUTPUT_DIR/ran"', env={variable: f"file://{tmp_path}/nowhere"})
    told = agent.until_state("j1", "failed")
    assert "nothing there" in told["error"]
    assert not (agent.job("j1") / "output" / "ran").exists()


def test_job_when_the_bucket_has_nothing_below_the_prefix_then_it_says_so(agent, server, client):
    agent.environment.update(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")
    agent.configure(backup=agent.backup(uri="s3://bucket/backups", endpoint_url=server, region="us-east-1"))
    agent.start("j1", "true", env={"HOSTLER_CODE_URI": "s3://bucket/none"})
    assert "s3://bucket/none: nothing there" in agent.until_state("j1", "failed")["error"]


def test_stage_when_one_file_is_named_then_only_it_comes(places, tmp_path):
    put_files(tmp_path / "a%41 b", {"train.py": b"x", "other.py": b"y"})
    code, data = places
    stage({"HOSTLER_CODE_URI": f"file://{tmp_path}/a%2541%20b/train.py"}, None, code, data)
    assert below(code) == {"train.py": b"x"}
    assert not data.exists()


def test_stage_when_a_console_left_folder_marks_then_they_are_passed_over(places, server, client, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    for key in ("code/", "code/lib/", "code/lib/part.txt"):
        client.put_object(Bucket="bucket", Key=key, Body=b"part" if key.endswith("txt") else b"")
    code, data = places
    stage({"HOSTLER_CODE_URI": "s3://bucket/code"}, {"endpoint_url": server, "region": "us-east-1"}, code, data)
    assert below(code) == {"lib/part.txt": b"part"}


@pytest.mark.parametrize("key", ["code/../../escape", "code//absolute", "code/./here"])
def test_stage_when_a_key_would_leave_its_folder_then_refused_and_nothing_lies_outside(
    places, server, client, monkeypatch, key
):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    client.put_object(Bucket="bucket", Key=key, Body=b"x")
    code, data = places
    with pytest.raises(ValueError, match="would leave its folder"):
        stage({"HOSTLER_CODE_URI": "s3://bucket/code"}, {"endpoint_url": server, "region": "us-east-1"}, code, data)
    assert not code.exists() or below(code) == {}


def test_stage_when_the_place_is_of_another_kind_then_refused(places):
    with pytest.raises(Exception, match="file:///folder or s3://bucket/prefix"):
        stage({"HOSTLER_DATA_URI": "http://example.com/x"}, None, *places)
