"""`python -m studies fetch`: the whole predictions, from the commit that last held them or from a
folder, each checked against its SHA-256.
"""

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from .manifest import Manifest, read_manifest
from .progress import say

FOLDER = "predictions"


def fetch_predictions(root: Path, source: Path | None = None) -> str:
    """Bring what is missing in `predictions/` of this folder; returns what was done. Nothing is
    written unless every file has its checksum."""
    manifest = read_manifest(root)
    missing = [name for name in manifest.files if not (root / FOLDER / name).exists()]
    if not missing:
        return f"all {len(manifest.files)} prediction files are here"
    with tempfile.TemporaryDirectory(dir=root) as held:
        unpacked = Path(held)
        if source is None:
            unpack_commit(manifest.commit, root, unpacked)
        found = source or unpacked
        wrong = [name for name in missing if not is_whole(found / name, manifest)]
        if wrong:
            raise ValueError(
                f"{len(wrong)} of {len(missing)} files are not there or have another SHA-256, first {wrong[0]} in "
                f"{source or manifest.commit}; nothing was written."
            )
        (root / FOLDER).mkdir(exist_ok=True)
        for name in missing:
            shutil.copyfile(found / name, unpacked / f"{name}.partial")
            os.replace(unpacked / f"{name}.partial", root / FOLDER / name)
    return f"{len(missing)} prediction files were brought to {root / FOLDER}"


def is_whole(path: Path, manifest: Manifest) -> bool:
    if not path.is_file():
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == manifest.files[path.name]


def unpack_commit(commit: str, root: Path, folder: Path) -> None:
    """The prediction files of a commit: from the history, or asked of `origin` where the clone is
    shallow."""
    if run_git(root, "cat-file", "-e", f"{commit}^{{tree}}").returncode:
        say(f"commit {commit[:10]} is not in this clone: asking origin for it")
        answer = run_git(root, "fetch", "--depth", "1", "--no-tags", "origin", commit)
        if answer.returncode:
            raise ValueError(
                f"origin does not give commit {commit[:10]} ({answer.stderr.decode().strip()}); take the files from "
                "another checkout: python -m studies fetch --data FOLDER."
            )
    archive = folder / "predictions.tar"
    # `root` need not be the top of the repository; names inside the archive are relative to it.
    packed = run_git(root, "archive", "--format=tar", f"--output={archive}", commit, FOLDER)
    if packed.returncode:
        raise ValueError(f"git cannot read commit {commit[:10]}: {packed.stderr.decode().strip()}")
    with tarfile.open(archive) as files:
        for member in files:
            content = files.extractfile(member)
            if content is not None:
                (folder / Path(member.name).name).write_bytes(content.read())


def run_git(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False)
