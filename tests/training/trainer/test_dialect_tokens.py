"""Tags of a dialect as tokens: added, learned, stored, loaded, exported; and chained trainings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers
from peft import PeftModel

from dm_jupyter.core.dialects.deepanalyze import DEEPANALYZE_TOKENS
from tests.training.trainer.tiny import CHATML, save_tiny, tiny_model, tiny_tokenizer
from training.train import main
from training.trainer.conversations import row_of
from training.trainer.dialect_tokens import TokenSettings, add_dialect_tokens, embed_new_tokens
from training.trainer.model import AdapterSettings, ModelSettings, open_model
from training.trainer.rows import TrainerError
from training.trainer.trained import TrainedWeights

CPU = torch.device("cpu")
TURN = "<Analyze>\nCount.\n</Analyze>\n<Code>\nprint(1)\n</Code>"
MESSAGES = [{"role": "user", "content": "How many?"}, {"role": "assistant", "content": TURN}]
RECIPE = """
[model]
base = "{base}"
dtype = "float32"
{adapter}
[tokens]
dialect = "deepanalyze"

[training]
learning_rate = 1e-2
epochs = {epochs}
batch_rows = 2
evaluate_every = 2
samples = 0
"""
ADAPTER = "[adapter]\nrank = 4\nalpha = 8\n"


def conversations(folder: Path) -> Path:
    file = folder / "conversations.jsonl"
    lines = [{"id": str(number), "messages": MESSAGES} for number in range(4)]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


def trained(folder: Path, base: Path, name: str, adapter: str = ADAPTER, epochs: int = 1) -> Path:
    """Runs the two commands, from conversations to a training."""
    rows, out = folder / f"{name}.jsonl", folder / name
    (folder / f"{name}.toml").write_text(RECIPE.format(base=base, adapter=adapter, epochs=epochs))
    made = ["rows", str(conversations(folder)), "--model", str(base), "--out", str(rows)]
    assert main([*made, "--tokens", "deepanalyze"]) == 0
    learn = ["sft", str(folder / f"{name}.toml"), "--rows", str(rows), "--out", str(out)]
    assert main(learn) == 0
    return out


def test_each_tag_becomes_one_id_and_keeps_its_text() -> None:
    tokenizer = tiny_tokenizer()
    before = tokenizer.encode("<Code>", add_special_tokens=False)
    added = add_dialect_tokens(tokenizer, TokenSettings("deepanalyze"))
    assert list(added) == list(range(258, 268))
    assert added[tokenizer.convert_tokens_to_ids("<Code>")] == tuple(before)
    row = row_of(MESSAGES, tokenizer, "q")
    learned = row.ids[row.mask].tolist()
    assert tokenizer.decode(learned) == f"{TURN}<|im_end|>"
    assert [one for one in learned if one in added] == [
        tokenizer.convert_tokens_to_ids(tag)
        for tag in ("<Analyze>", "</Analyze>", "<Code>", "</Code>")
    ]
    # A server that leaves special tokens out of its text still says the tags.
    assert tokenizer.decode(learned, skip_special_tokens=True) == TURN
    again = add_dialect_tokens(tokenizer, TokenSettings("deepanalyze"))
    assert again == dict.fromkeys(added, ())
    assert len(DEEPANALYZE_TOKENS) == len(added)


def test_spare_rows_of_the_embedding_are_taken_before_it_grows() -> None:
    tokenizer, model = tiny_tokenizer(), tiny_model(dtype=torch.float32)
    spelt = tokenizer.encode("<Code>", add_special_tokens=False)
    added = add_dialect_tokens(tokenizer, TokenSettings("deepanalyze"))
    embed_new_tokens(model, added)
    for table in (model.get_input_embeddings(), model.get_output_embeddings()):
        assert table.weight.shape[0] == 512  # the model has 512 rows for 258 tokens
        code = table.weight[tokenizer.convert_tokens_to_ids("<Code>")]
        torch.testing.assert_close(code, table.weight[spelt].mean(dim=0))
    small = tiny_model(dtype=torch.float32)
    small.resize_token_embeddings(260)
    old = small.get_input_embeddings().weight[:258].clone()
    embed_new_tokens(small, added)
    assert small.get_input_embeddings().weight.shape[0] == 268
    assert small.get_output_embeddings().weight.shape[0] == 268
    assert torch.equal(small.get_input_embeddings().weight[:258], old)


@pytest.mark.parametrize("tied", [False, True])
def test_an_adapter_learns_the_rows_of_the_tokens_and_no_others(tied: bool, tmp_path: Path) -> None:
    save_tiny(tmp_path / "m")
    if tied:
        config = transformers.LlamaConfig.from_pretrained(tmp_path / "m", tie_word_embeddings=True)
        transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "m")
    settings = ModelSettings(str(tmp_path / "m"), "bfloat16")
    opened = open_model(settings, AdapterSettings(4, 8), CPU, tokens=TokenSettings("deepanalyze"))
    weights = opened.parameters()
    rows = {name: one for name, one in weights.items() if "trainable_tokens" in name}
    assert len(weights) - len(rows) == 2 * 7 * 2
    assert [tuple(one.shape) for one in rows.values()] == [(10, 32)] * (1 if tied else 2)
    assert {one.dtype for one in weights.values()} == {torch.float32}
    assert opened.vocabulary == 268  # the embedding has 512 rows


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # of peft 0.21
def test_learned_tokens_are_stored_with_the_adapter_and_loaded_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = save_tiny(tmp_path / "m", "qwen2")
    out = trained(tmp_path, base, "out", epochs=3)
    opened = TrainedWeights.of(out).opened(CPU)
    row = row_of(MESSAGES, opened.tokenizer, "q")
    ids = torch.from_numpy(row.ids)[None]
    with torch.no_grad():
        logits = opened.model(input_ids=ids).logits
        untrained = open_model(ModelSettings(str(base), "float32"), None, CPU).model.eval()
        assert not torch.allclose(logits, untrained(input_ids=ids).logits, atol=0.1)
    untouched = open_model(
        ModelSettings(str(base), "float32"), None, CPU, tokens=TokenSettings("deepanalyze")
    )
    before = untouched.model.get_input_embeddings().weight[opened.added[0]]
    (after,) = (
        one
        for name, one in opened.parameters().items()
        if "embed_tokens.token_adapter.trainable_tokens_delta" in name
    )
    assert float((after[0] - before).abs().max().detach()) > 1e-3  # the tag's row learned

    for form in ("peft", "weights"):
        assert main(["export", str(out), "--form", form, "--out", str(tmp_path / form)]) == 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "peft")
    assert tokenizer.encode(TURN, add_special_tokens=False) == opened.tokenizer.encode(
        TURN, add_special_tokens=False
    )
    fresh = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    by_peft = PeftModel.from_pretrained(fresh, tmp_path / "peft").eval()
    whole = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "weights", dtype=torch.float32
    ).eval()
    with torch.no_grad():
        torch.testing.assert_close(by_peft(input_ids=ids).logits, logits, rtol=0, atol=1e-4)
        torch.testing.assert_close(whole(input_ids=ids).logits, logits, rtol=0, atol=1e-4)

    capsys.readouterr()
    assert main(["export", str(out), "--out", str(tmp_path / "a.gguf")]) == 1
    told = capsys.readouterr().err
    assert "also learned embeddings of added tokens" in told
    assert "--form weights" in told
    assert not (tmp_path / "a.gguf").exists()
    assert main(["export", str(out), "--form", "peft", "--out", str(tmp_path / "peft")]) == 1
    assert "exists already; name a new folder" in capsys.readouterr().err


def test_rows_that_were_made_without_the_tokens_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = save_tiny(tmp_path / "m")
    rows = tmp_path / "rows.jsonl"
    made = ["rows", str(conversations(tmp_path)), "--model", str(base), "--out", str(rows)]
    assert main(made) == 0
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(base=base, adapter=ADAPTER, epochs=1))
    learn = ["sft", str(recipe), "--rows", str(rows), "--out", str(tmp_path / "out")]
    assert main(learn) == 1
    assert "make the rows with --tokens deepanalyze" in capsys.readouterr().err
    with pytest.raises(TrainerError, match="the dialect 'markdown' has no tokens"):
        TokenSettings("markdown")


@pytest.mark.parametrize("held", [False, True])
def test_rows_with_tokens_that_the_recipe_lacks_are_refused(
    held: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The embedding has spare rows, so such ids would pass and mean nothing."""
    base = save_tiny(tmp_path / "m")
    files = {name: tmp_path / f"{name}.jsonl" for name in ("with", "without")}
    for name, file in files.items():
        made = ["rows", str(conversations(tmp_path)), "--model", str(base), "--out", str(file)]
        assert main([*made, *(["--tokens", "deepanalyze"] if name == "with" else [])]) == 0
    text = RECIPE.format(base=base, adapter=ADAPTER, epochs=1)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(text.replace(text[text.index("[tokens]") :].split("\n\n")[0], ""))
    given = ["--rows", str(files["with"])]
    if held:
        given = ["--rows", str(files["without"]), "--held", str(files["with"])]
    assert main(["sft", str(recipe), *given, "--out", str(tmp_path / "out")]) == 1
    assert "is not in the model's vocabulary of 258" in capsys.readouterr().err
    if held:  # and the other way round
        recipe.write_text(text)
        given = ["--rows", str(files["with"]), "--held", str(files["without"])]
        assert main(["sft", str(recipe), *given, "--out", str(tmp_path / "out")]) == 1
        assert "make the rows with --tokens deepanalyze" in capsys.readouterr().err


def test_a_stage_goes_on_from_the_weights_of_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two stages with all weights, as the recipes of DeepAnalyze's curriculum chain them."""
    base = save_tiny(tmp_path / "m")
    first = trained(tmp_path, base, "first", adapter="")
    second = trained(tmp_path, first / "model", "second", adapter="")
    one, two = TrainedWeights.of(first).opened(CPU), TrainedWeights.of(second).opened(CPU)
    assert one.added == two.added == tuple(range(258, 268))
    begun = TrainedWeights.of(second).model.base
    assert begun == str(first / "model")
    log = [json.loads(line) for line in (second / "log.jsonl").read_text().splitlines()]
    start = [json.loads(line) for line in (first / "log.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in (*start, *log) if line["kind"] == "update"]
    assert losses[2] < losses[0]  # the second stage begins where the first one ended
    stored = transformers.AutoModelForCausalLM.from_pretrained(second / "model")
    torch.testing.assert_close(
        stored.state_dict()["lm_head.weight"],
        two.model.state_dict()["lm_head.weight"].to(stored.dtype),
    )
    assert transformers.AutoTokenizer.from_pretrained(second / "model").chat_template == CHATML
    capsys.readouterr()
    assert main(["export", str(second), "--form", "peft", "--out", str(tmp_path / "p")]) == 1
    assert "no adapter to export" in capsys.readouterr().err
