"""What the Trainer and a pipeline of Hugging Face say of some texts, by a small network of their own."""

import json
import sys
import tempfile
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    pipeline,
)

NAMES = ["cat", "dog", "owl"]
WORDS = ["[UNK]", "[PAD]", *(f"w{i}" for i in range(30))]
torch.manual_seed(0)
words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]")
drawn = torch.randint(2, len(WORDS), (260, 4))
# The first word says most of the label, and the second spoils some.
labels = torch.where(drawn[:, 1] < 8, drawn[:, 2], drawn[:, 0]) % 3
rows = [{"input_ids": x, "labels": y} for x, y in zip(drawn, labels, strict=True)]
texts = [" ".join(WORDS[i] for i in row) for row in drawn.tolist()]
network = BertForSequenceClassification(
    BertConfig(
        vocab_size=len(WORDS),
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=24,
        id2label=dict(enumerate(NAMES)),
        label2id={name: i for i, name in enumerate(NAMES)},
    )
)
with tempfile.TemporaryDirectory() as folder:
    how = TrainingArguments(
        folder,
        report_to=[],
        max_steps=400,
        learning_rate=3e-3,
        disable_tqdm=True,
        use_cpu=True,
        save_strategy="no",
    )
    trainer = Trainer(network, how, train_dataset=rows[:200])
    trainer.train()
    out = trainer.predict(rows[200:])
pipe = pipeline("text-classification", model=network, tokenizer=tokenizer, device=-1)
outputs = {
    "predictions": out.predictions.tolist(),
    "label_ids": out.label_ids.tolist(),
    "pipeline": pipe(texts[200:]),
    "pipeline_top_k": pipe(texts[200:], top_k=None),
    "gold": [NAMES[i] for i in out.label_ids.tolist()],
}
Path(sys.argv[1], "transformers.json").write_text(json.dumps(outputs) + "\n")
