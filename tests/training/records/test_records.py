"""Records: those of older releases are read as well, under today's names."""

import json
from pathlib import Path

from tests.training.outcomes import tried
from training.records.records import EvalRecord, RecordLog, read_run, salvage

OLD = {"correct": "right", "strict_correct": "strict", "self_corrected": "is_mended"}
KEPT = Path(__file__).parents[3] / "benchmarks" / "records" / "qrdata-40-7.jsonl"


def _written_by_an_older_release(record: EvalRecord, file: Path) -> None:
    log = RecordLog(file)
    log.append(record)
    fields = json.loads(file.read_text())
    file.write_text(json.dumps({OLD.get(name, name): fields[name] for name in fields}) + "\n")


def test_a_record_of_an_older_release_is_read_by_every_reader(tmp_path: Path) -> None:
    record = tried("a", True, strict_correct=False, self_corrected=True, label="3")
    file = tmp_path / "records.jsonl"
    _written_by_an_older_release(record, file)
    assert '"is_mended": true' in file.read_text()
    assert read_run(file) == RecordLog(file).read() == [record]
    assert RecordLog(file).outcomes() == [record.compacted()]
    assert salvage(file).damaged == 0


def test_the_records_that_the_repository_keeps_are_read() -> None:
    records = read_run(KEPT)
    assert len(records) == 40
    lines = [json.loads(line) for line in KEPT.read_text().splitlines()]
    assert [one.correct for one in records] == [line["right"] for line in lines]
    assert [one.strict_correct for one in records] == [line["strict"] for line in lines]
