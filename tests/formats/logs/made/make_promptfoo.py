"""A small run of promptfoo as JSON and as JSON lines, by a provider that knows its answers."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROVIDER = """
module.exports = class {
  id() { return "known"; }
  async callApi(prompt) {
    const n = prompt.length + prompt.charCodeAt(prompt.length - 1);
    return { output: n % 3 ? "yes" : "no", logProbs: [-(n % 7) / 10 - 0.05],
             tokenUsage: { total: 2, prompt: 1, completion: 1 } };
  }
};
"""
QUESTIONS = 6


def main(target: Path, command: list[str]) -> None:
    """Write both files to a folder; `command` starts promptfoo."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "provider.js").write_text(PROVIDER)
        config = {
            "prompts": ["Q {{q}}", "Other {{q}}"],
            "providers": ["file://provider.js"],
            "tests": [
                {"vars": {"q": f"q{i}"}, "assert": [{"type": "equals", "value": "yes"}]}
                for i in range(QUESTIONS)
            ],
        }
        (folder / "config.json").write_text(json.dumps(config))
        quiet = {
            "PROMPTFOO_CONFIG_DIR": str(folder / "state"),
            "PROMPTFOO_DISABLE_TELEMETRY": "1",
            "PROMPTFOO_DISABLE_UPDATE": "1",
        }
        outputs = ["-o", "promptfoo.json", "-o", "promptfoo.jsonl"]
        call = [*command, "eval", "-c", "config.json", "--no-cache", "--no-table", *outputs]
        # It ends with 100 where an assertion failed, as some here do.
        subprocess.run(call, cwd=folder, env={**os.environ, **quiet}, check=False)
        for file in ("promptfoo.json", "promptfoo.jsonl"):
            shutil.copy(folder / file, target / file)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2:])
